package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// applying contains the queued statements of one answer, which are committed together with the end of its
// claim.
type applying[Tx any] struct {
	admin.QueuedBatch[Tx]
	options store.TxOptions
}

// errApart means that a shared transaction was not committed, and that one of its inputs may be the cause.
var errApart = errors.New("semel: what was to be written together was not")

func isApart(err error) bool { return errors.Is(err, errApart) }

// applyQueued commits one answer, together with the answers that other workers commit at the same time.
func (r *answering[Tx, Answer]) applyQueued(ctx context.Context, one applying[Tx]) store.Result {
	if !r.gatherer.MayCombine(one.Batch) {
		return r.gatherer.CommitCombined(ctx, one.options, []admin.QueuedBatch[Tx]{one.QueuedBatch})
	}
	result, err := r.applies.Do(ctx, one)
	if err != nil { // the outcome of the shared transaction is unknown
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	return result
}

// applyAll commits several answers in one transaction. If the transaction fails, each answer is committed
// alone, so that the failure is attributed to the message that caused it. The queued statements of a failed
// transaction had no effect, and no call is repeated.
func (r *answering[Tx, Answer]) applyAll(ctx context.Context, all []applying[Tx]) ([]store.Result, error) {
	gathered := make([]admin.QueuedBatch[Tx], len(all))
	for i := range all {
		gathered[i] = all[i].QueuedBatch
	}
	result, err := splitResult(r.gatherer.CommitCombined(ctx, all[0].options, gathered), len(all))
	if err != nil {
		return nil, err
	}
	return slices.Repeat([]store.Result{result}, len(all)), nil
}

// splitResult returns the result of each of n inputs that were committed in one transaction. splitResult returns
// errApart if each input must be committed alone.
func splitResult(result store.Result, n int) (store.Result, error) {
	if n < 2 {
		return result, nil
	}
	if result.Outcome == store.NotCommitted && result.Class != store.ClassDown {
		return store.Result{}, errApart
	}
	result.Culprit = store.NoCulprit
	return result, nil
}
