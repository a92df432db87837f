// Package contract defines the interfaces of stores and sources. Programs that use existing stores
// and sources need only a few of its types: Verdict (the result of TryMark), StoredRow and RowFilter
// (inbox rows), and End (the outcome of a delivery).
//
// A store that writes markers and effects in one transaction implements TxStore; a Batch is an open
// transaction with its marks. Further features are optional interfaces, such as Inbox, Requeuer,
// Leases, TxMarker, SchemaChecker, MarkerReader, PositionStore and Controls. The engine checks for
// them when a consumer starts, and a consumer that needs a missing feature does not start.
//
// A source implements Source, and optionally DeadLettering, IdleReporter, LaneFailer and Positioned.
//
// The comments of the methods are the specification. Packages storetest and sourcetest contain the
// test suites that every store and source must pass.
package contract
