// Package store defines stores: the interfaces that an author of a store implements, as package
// database/sql/driver does for databases. Programs that use existing stores need only a few of its types:
// Verdict (the result of TryMark), StoredRow and RowFilter (inbox rows).
//
// A store that writes markers and effects in one transaction implements TxStore; a Batch is an open
// transaction with its markers. Further features are optional interfaces, such as Inbox, Leases, CallerTx and
// Reaper. A consumer checks at its start which of them the store implements, and does not start if it needs a
// missing feature.
//
// The comments of the methods are the specification. Package storetest contains the test suites that every
// store must pass.
package store
