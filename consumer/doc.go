// Package consumer runs handlers: it takes deliveries from a source, marks each
// message in a store, runs the handler in the same transaction, commits, and
// tells the source afterwards. What it promises stands in package semel.
//
// A Consumer is a handler with its policy, a Config. Make one with New, with
// NewBatch for set-based effects, and with ByType for a handler for each type of
// message. NewLeased, NewCalling and NewKeyed are for handlers that call other
// systems. Run drives a source until it is told to stop; Process and ProcessAll
// serve a loop of your own; TryMark marks inside a transaction of your own. The Requeue of a
// store makes parked messages due again, and a running consumer processes them.
package consumer
