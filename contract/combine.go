package contract

import "context"

// BatchCombiner is an optional ability of a TxStore whose handlers queue their statements: to
// gather them while no transaction is open, and to carry out those of several claims in
// one. So what many workers have to write at once costs one transaction and one commit.
type BatchCombiner[Tx any] interface {
	// Combinable returns a batch for the handler of one claim, for which nothing is open: its Tx
	// keeps what is queued, Rollback forgets it, and Kill cuts nothing that others share.
	// Its Commit is a CommitCombined of nothing else, with the zero TxOptions.
	Combinable(m Mark) Batch[Tx]
	// CommitCombined opens a transaction with the marks, in which every claim must stand,
	// sends what was queued, in the order given, ends the claims and commits: all of it or
	// nothing. Result.Culprit is an index into all. Of a failure that may be one's of
	// several nothing is left, and whoever calls gives each again by itself: what was
	// queued may be sent as often as it takes. The claims are of different rows.
	CommitCombined(ctx context.Context, o TxOptions, all []QueuedBatch[Tx]) Result
}

// QueuedBatch is the batch of one claim, whose statements are queued, and how it ends.
type QueuedBatch[Tx any] struct {
	// Batch is one that Gather returned, Ending that of a batch with its mark alone.
	Batch  Batch[Tx]
	Ending Ending
}

// CombineChecker is an optional ability of a batch that Combinable returned: to say whether it may
// share a transaction. One whose Commit runs functions of its handler's has its own.
type CombineChecker interface{ MayCombine() bool }
