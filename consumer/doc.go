// Package consumer runs handlers. A consumer takes deliveries from a source, marks each message in a store, runs
// the handler in the same transaction, commits, and acks the delivery afterwards. Package semel describes the
// guarantee.
//
// A Consumer is a handler with its Config. Create it with New, or with NewBatch for set-based effects; ByType
// combines handlers for several types of messages. NewLeased, NewCalling and NewKeyed are for handlers that call
// other systems. Run consumes a source until it is stopped. Process and ProcessAll serve a loop of your own, and
// TryMark marks in a transaction of your own. The store's Requeue retries parked messages, which a running
// consumer then processes.
package consumer
