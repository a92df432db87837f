package storetest_test

import (
	"context"
	"slices"
	"sync"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// endsClaims is a store that ends claims in another way.
type endsClaims struct {
	*memstore.Store
	change func(*store.ClaimEnding)
}

func (s endsClaims) changed(all []store.ClaimEnding) []store.ClaimEnding {
	all = slices.Clone(all)
	for i := range all {
		s.change(&all[i])
	}
	return all
}

func (s endsClaims) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	return s.Store.End(ctx, s.changed(all))
}

func (s endsClaims) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (batch, []store.Verdict, error) {
	b, verdicts, err := s.Store.Begin(ctx, o, marks)
	return endsBatch{b, s}, verdicts, err
}

type endsBatch struct {
	batch
	store endsClaims
}

func (b endsBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	e.Claims = b.store.changed(e.Claims)
	return b.batch.Commit(ctx, e)
}

// ending plants a fault in how claims end.
func ending(change func(*store.ClaimEnding)) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return endsClaims{s, change} }
}

// tellsFewer tells a claim of all steps but the last.
type tellsFewer struct{ *memstore.Store }

func (s tellsFewer) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	all, err := s.Store.Claim(ctx, o)
	for i := range all {
		all[i].Row.Steps = all[i].Row.Steps[:max(len(all[i].Row.Steps)-1, 0)]
	}
	return all, err
}

// recordsFirst ends claims in a commit of its own, before that of their effects.
type recordsFirst struct{ *memstore.Store }

func (s recordsFirst) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (batch, []store.Verdict, error) {
	b, verdicts, err := s.Store.Begin(ctx, o, marks)
	return recordedBatch{b, s}, verdicts, err
}

type recordedBatch struct {
	batch
	store recordsFirst
}

func (b recordedBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	lost, err := b.store.End(ctx, e.Claims)
	if err != nil || len(lost) > 0 {
		b.Rollback(ctx)
		return store.Result{Outcome: store.NotCommitted, Class: store.ClassClaimLost}
	}
	e.Claims = nil
	return b.batch.Commit(ctx, e)
}

// takesLate ends a claim whatever its token: under the one that was given last.
type takesLate struct {
	*memstore.Store
	mutex sync.Mutex
	last  map[int64]store.Token
}

func (s *takesLate) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	all = slices.Clone(all)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range all {
		all[i].Token = s.last[all[i].Number]
	}
	return s.Store.End(ctx, all)
}

func (s *takesLate) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	all, err := s.Store.Claim(ctx, o)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range all {
		s.last[all[i].Number] = all[i].Token
	}
	return all, err
}

var stepFaults = []fault{
	{"steps are not written", "C11_a_step_is_written", ending(func(e *store.ClaimEnding) { e.Steps = nil })},
	{"only the last step is kept", "C11_a_step_is_written", ending(func(e *store.ClaimEnding) { e.Steps = e.Steps[max(len(e.Steps)-1, 0):] })},
	{"a claim is told of a step too few", "C11_a_step_is_written", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return tellsFewer{s} }},
	{"a step is recorded before its effect", "law_5_a_stale_token_ends_no_step", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return recordsFirst{s} }},
	{"a late token ends a step", "law_5_a_stale_token_ends_no_step", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &takesLate{Store: s, last: map[int64]store.Token{}}
	}},
	{"outputs are not kept", "C11_a_step_is_written", ending(func(e *store.ClaimEnding) {
		e.Steps = slices.Clone(e.Steps)
		for i := range e.Steps {
			e.Steps[i].Output = nil
		}
	})},
	{"a step counts as a release", "C11_attempts_begin_anew", ending(func(e *store.ClaimEnding) {
		if e.Event == store.RowStepped {
			e.Event = store.RowReleased
		}
	})},
	{"a step ends its message", "C11_a_step_is_written", ending(func(e *store.ClaimEnding) {
		if e.Event == store.RowStepped {
			e.Event = store.RowCompleted
		}
	})},
	{"a failure takes steps back", "C11_steps_outlive", ending(func(e *store.ClaimEnding) {
		if e.Event == store.RowFailed {
			e.Steps = []store.StepDone{}
		}
	})},
}
