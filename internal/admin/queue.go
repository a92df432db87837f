package admin

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// QueueStore is implemented by a store.TxStore whose handlers queue their statements, which are sent together.
// QueueStore collects the statements while no transaction is open, and executes those of several claims in one
// transaction, so that many workers share one commit.
type QueueStore[Tx any] interface {
	// Combinable returns a batch for the handler of one claim, without an open transaction. Its
	// Tx queues statements, Rollback discards them, and Kill does not close a connection that
	// others use. Its Commit is a CommitCombined of this batch alone, with the zero TxOptions.
	Combinable(m store.Mark) store.Batch[Tx]
	// MayCombine reports whether a batch of Combinable may share a transaction. A batch whose Commit
	// calls functions of its handler needs its own transaction.
	MayCombine(b store.Batch[Tx]) bool
	// CommitCombined opens a transaction with the marks, sends the queued statements in the
	// given order, ends the claims and commits: all or nothing. Every claim must be valid, and
	// the claims belong to different rows. Result.Culprit is an index into all. If one of
	// several batches may have caused a failure, nothing is committed, and the caller commits
	// each batch alone. Queued statements may therefore be sent more than once.
	CommitCombined(ctx context.Context, o store.TxOptions, all []QueuedBatch[Tx]) store.Result
	// ReceiveQueued queues the statements of CallerTx.ReceiveIn. judge is called with the verdicts
	// before the commit. Its error counts as an error of the handler that uses tx.
	ReceiveQueued(tx Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason, judge func([]store.Verdict) error) error
}

// QueuedBatch is the batch of one claim, whose statements are queued, and how it ends.
type QueuedBatch[Tx any] struct {
	// Batch was returned by Combinable. Ending is that of a batch with its mark alone.
	Batch  store.Batch[Tx]
	Ending store.Ending
}
