package admin

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// QueueStore is implemented by a store.TxStore whose handlers queue their statements, which are sent
// together. QueueStore collects the statements while no transaction is open, and executes the statements of
// several claims in one transaction, so that many workers share one commit.
type QueueStore[Tx any] interface {
	// Combinable returns a batch for one claimed message, whose mark is m. The batch has no open transaction, and
	// CommitCombined can commit it together with other batches. The Tx of a combinable batch queues statements.
	// Rollback discards the statements. Kill does not close a connection that other batches use. Commit of a
	// combinable batch works as CommitCombined of the batch alone, with the zero TxOptions.
	Combinable(m store.Mark) store.Batch[Tx]
	// MayCombine reports whether a batch of Combinable may share a transaction. If Commit calls functions of
	// the batch's handler, the batch needs its own transaction.
	MayCombine(b store.Batch[Tx]) bool
	// CommitCombined opens a transaction with the markers, sends the queued statements in the given order, ends the
	// claims and commits. If CommitCombined returns an error, nothing is committed. Every claim must be valid, and the
	// claims belong to different rows. Result.Culprit is an index into all. If one of several batches may have caused a
	// failure, nothing is committed, and the caller must commit each batch alone. Queued statements may therefore be
	// sent more than once.
	CommitCombined(ctx context.Context, o store.TxOptions, all []QueuedBatch[Tx]) store.Result
	// ReceiveQueued queues the statements of CallerTx.ReceiveIn. Before the commit, the function judge is called with
	// the store's answers (new, duplicate, conflict). An error of judge counts as an error of the handler that uses tx.
	ReceiveQueued(tx Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason, judge func([]store.Verdict) error) error
}

// QueuedBatch is the batch of one claim, with queued statements, and how the batch ends.
type QueuedBatch[Tx any] struct {
	// Batch was returned by Combinable. Ending is how the batch ends, for a batch that has only one marker.
	Batch  store.Batch[Tx]
	Ending store.Ending
}
