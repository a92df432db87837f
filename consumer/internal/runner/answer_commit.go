package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/semel-go/semel/store"
)

// applying is what follows from an answer, gathered, which is to be written with the end
// of its claim.
type applying[Tx any] struct {
	store.QueuedBatch[Tx]
	options store.TxOptions
}

// errApart: of what was to be written together nothing is, and it may be for one of them.
var errApart = errors.New("semel: what was to be written together was not")

func isApart(err error) bool { return errors.Is(err, errApart) }

// applyQueued writes one, with what others have to write at the same time.
func (r *answering[Tx, Answer]) applyQueued(ctx context.Context, one applying[Tx]) store.Result {
	if !r.gatherer.MayCombine(one.Batch) {
		return r.gatherer.CommitCombined(ctx, one.options, []store.QueuedBatch[Tx]{one.QueuedBatch})
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
	gathered := make([]store.QueuedBatch[Tx], len(all))
	for i := range all {
		gathered[i] = all[i].QueuedBatch
	}
	result, err := shared(r.gatherer.CommitCombined(ctx, all[0].options, gathered), len(all))
	if err != nil {
		return nil, err
	}
	return slices.Repeat([]store.Result{result}, len(all)), nil
}

// shared returns the result of each of n inputs that were committed in one transaction, or errApart
// if each input must be committed by itself.
func shared(result store.Result, n int) (store.Result, error) {
	if n < 2 {
		return result, nil
	}
	if result.Outcome == store.NotCommitted && result.Class != store.ClassDown {
		return store.Result{}, errApart
	}
	result.Culprit = store.NoCulprit
	return result, nil
}
