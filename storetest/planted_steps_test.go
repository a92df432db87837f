package storetest_test

import (
	"context"
	"slices"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

// endsClaims is a store that ends claims in another way.
type endsClaims struct {
	*memstore.Store
	change func(*contract.ClaimEnding)
}

func (s endsClaims) changed(all []contract.ClaimEnding) []contract.ClaimEnding {
	all = slices.Clone(all)
	for i := range all {
		s.change(&all[i])
	}
	return all
}

func (s endsClaims) End(ctx context.Context, all []contract.ClaimEnding) ([]int, error) {
	return s.Store.End(ctx, s.changed(all))
}

func (s endsClaims) Begin(ctx context.Context, o contract.TxOptions, marks []contract.Mark) (batch, []contract.Verdict, error) {
	b, verdicts, err := s.Store.Begin(ctx, o, marks)
	return endsBatch{b, s}, verdicts, err
}

type endsBatch struct {
	batch
	store endsClaims
}

func (b endsBatch) Commit(ctx context.Context, e contract.Ending) contract.Result {
	e.Claims = b.store.changed(e.Claims)
	return b.batch.Commit(ctx, e)
}

// ending plants a fault in how claims end.
func ending(change func(*contract.ClaimEnding)) func(*memstore.Store) contract.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) contract.TxStore[*memstore.Tx] { return endsClaims{s, change} }
}

var stepFaults = []fault{
	{"steps are not written", "C11_a_step_is_written", ending(func(e *contract.ClaimEnding) { e.Steps = nil })},
	{"only the last step is kept", "C11_a_step_is_written", ending(func(e *contract.ClaimEnding) { e.Steps = e.Steps[max(len(e.Steps)-1, 0):] })},
	{"outputs are not kept", "C11_a_step_is_written", ending(func(e *contract.ClaimEnding) {
		e.Steps = slices.Clone(e.Steps)
		for i := range e.Steps {
			e.Steps[i].Output = nil
		}
	})},
	{"a step counts as a release", "C11_attempts_begin_anew", ending(func(e *contract.ClaimEnding) {
		if e.Event == contract.RowStepped {
			e.Event = contract.RowReleased
		}
	})},
	{"a step ends its message", "C11_a_step_is_written", ending(func(e *contract.ClaimEnding) {
		if e.Event == contract.RowStepped {
			e.Event = contract.RowCompleted
		}
	})},
	{"a failure takes steps back", "C11_steps_outlive", ending(func(e *contract.ClaimEnding) {
		if e.Event == contract.RowFailed {
			e.Steps = []contract.StepDone{}
		}
	})},
}
