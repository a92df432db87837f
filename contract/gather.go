package contract

import "context"

// Gatherer is an optional ability of a TxStore whose handlers queue their statements: to
// gather them while no transaction is open, and to carry out those of several claims in
// one. So what many workers have to write at once costs one transaction and one commit.
type Gatherer[Tx any] interface {
	// Gather returns a batch for the handler of one claim, for which nothing is open: its Tx
	// keeps what is queued, Rollback forgets it, and Kill cuts nothing that others share.
	// Its Commit is a CommitGathered of nothing else, with the zero TxOptions.
	Gather(m Mark) Batch[Tx]
	// CommitGathered opens a transaction with the marks, in which every claim must stand,
	// sends what was queued, in the order given, ends the claims and commits: all of it or
	// nothing. Result.Culprit is an index into all. Of a failure that may be one's of
	// several nothing is left, and whoever calls gives each again by itself: what was
	// queued may be sent as often as it takes. The claims are of different rows.
	CommitGathered(ctx context.Context, o TxOptions, all []Gathered[Tx]) Result
}

// Gathered is what was gathered of a claim, and how it ends.
type Gathered[Tx any] struct {
	// Batch is one that Gather returned, Ending that of a batch with its mark alone.
	Batch  Batch[Tx]
	Ending Ending
}

// Shareable is an optional ability of a batch that Gather returned: to say whether it may
// share a transaction. One whose Commit runs functions of its handler's has its own.
type Shareable interface{ Shareable() bool }
