package runner

import (
	"context"
	"errors"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// applying is what follows from an answer, gathered, which is to be written with the end
// of its claim.
type applying[Tx any] struct {
	admin.QueuedBatch[Tx]
	options store.TxOptions
}

// errApart: of what was to be written together nothing is, and it may be for one of them.
var errApart = errors.New("semel: what was to be written together was not")

func isApart(err error) bool { return errors.Is(err, errApart) }

// applyQueued writes one, with what others have to write at the same time.
func (r *answering[Tx, Answer]) applyQueued(ctx context.Context, one applying[Tx]) store.Result {
	if !r.gatherer.MayCombine(one.Batch) {
		return r.gatherer.CommitCombined(ctx, one.options, []admin.QueuedBatch[Tx]{one.QueuedBatch})
	}
	result, err := r.applies.Do(ctx, one)
	if err != nil { // nobody knows what became of those that share the transaction
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	return result
}

// applyAll writes several in one transaction. Where that fails, each is written by itself:
// what was queued has had no effect, nobody is called again, and the failure finds the one
// whose it is.
func (r *answering[Tx, Answer]) applyAll(ctx context.Context, all []applying[Tx]) ([]store.Result, error) {
	gathered := make([]admin.QueuedBatch[Tx], len(all))
	for i := range all {
		gathered[i] = all[i].QueuedBatch
	}
	result := r.gatherer.CommitCombined(ctx, all[0].options, gathered)
	if len(all) > 1 {
		if result.Outcome == store.NotCommitted && result.Class != store.ClassDown {
			return nil, errApart
		}
		result.Culprit = store.NoCulprit
	}
	out := make([]store.Result, len(all))
	for i := range out {
		out[i] = result
	}
	return out, nil
}
