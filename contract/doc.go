// Package contract is what stores and sources implement and what the engine
// relies on. Users of stores and sources that exist need little of it: what
// TryMark answers (Verdict), the rows of an inbox (StoredRow, RowFilter) and the
// kinds of endings (End).
//
// A store that keeps markers and effects in one transaction implements TxStore;
// its Batch is an open transaction with its marks. What a store can do beside
// that it says with a further small interface, which the engine looks for when a
// consumer starts: Inbox, Requeuer, Leases, TxMarker, SchemaChecker, MarkerReader,
// PositionStore, Controls and others. What is missing and needed is an error then, and not
// later.
//
// A source that delivers implements Source, and where it can, DeadLettering,
// IdleReporter, LaneFailer and Positioned.
//
// What each method has to keep is said with it, and proved by the suites of
// packages storetest and sourcetest, which every store and source passes.
package contract
