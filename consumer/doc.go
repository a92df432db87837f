// Package consumer runs handlers. A consumer takes deliveries from a source, marks each message in a store, runs
// the handler in the same transaction, commits, and acks the delivery afterwards. Package semel describes the
// guarantee.
//
// A Consumer is a handler with its Config. Create a Consumer with New, or with NewBatch for set-based
// effects. ByType combines handlers for several types of messages. NewLeased, NewCalling and NewKeyed are for
// handlers that call other systems. Run consumes a source until Run is stopped. Process and ProcessAll are
// for programs with their own receive loop. TryMark marks a message in a transaction that the program has
// opened. Requeue of the store retries parked messages; a running consumer then processes them.
package consumer
