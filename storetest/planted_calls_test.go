package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// wrongCalls is a store with a fault in what it remembers of calls.
type wrongCalls struct {
	*memstore.Store
	told func(*store.CallStarted)
	end  func(*store.ClaimEnding)
}

func (s wrongCalls) StartCalls(ctx context.Context, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	all, err := s.Store.StartCalls(ctx, claims, lease)
	for i := range all {
		if s.told != nil {
			s.told(&all[i])
		}
	}
	return all, err
}

func (s wrongCalls) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	for i := range all {
		if s.end != nil {
			s.end(&all[i])
		}
	}
	return s.Store.End(ctx, all)
}

// startsBriefly begins calls without extending their leases.
type startsBriefly struct{ *memstore.Store }

func (s startsBriefly) StartCalls(ctx context.Context, claims []store.Claim, _ time.Duration) ([]store.CallStarted, error) {
	return s.Store.StartCalls(ctx, claims, 0)
}

// retriesBlindly lets people repeat what nobody knows of.
type retriesBlindly struct{ *memstore.Store }

func (s retriesBlindly) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	errs := s.Store.Requeue(ctx, a, rows...)
	for i, r := range rows {
		now, err := s.Rows(ctx, store.RowFilter{Numbers: []int64{r.Number}})
		if errs[i] != nil && err == nil && len(now) == 1 && now[0].UnknownOutcome() {
			errs[i] = errors.Join(s.Resolve(ctx, admin.ResolvedNotDone, a, r)...)
		}
	}
	return errs
}

// believesNobody has a message called for again whatever somebody found out.
type believesNobody struct{ *memstore.Store }

func (s believesNobody) Resolve(ctx context.Context, _ admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	return s.Store.Resolve(ctx, admin.ResolvedNotDone, a, rows...)
}

// resolvesWhatIsKnown lets people end a row that was called for, also where nothing is unknown.
type resolvesWhatIsKnown struct{ *memstore.Store }

func (s resolvesWhatIsKnown) Resolve(ctx context.Context, as admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	errs := s.Store.Resolve(ctx, as, a, rows...)
	for i, r := range rows {
		now, err := s.Rows(ctx, store.RowFilter{Numbers: []int64{r.Number}})
		if err == nil && len(now) == 1 && now[0].State == store.StateParked && now[0].CallsFinished > 0 {
			errs[i] = nil
		}
	}
	return errs
}

// remembersWhatIsKnown forgets only the calls of which nobody knew, when they are resolved.
type remembersWhatIsKnown struct {
	*memstore.Store
	known map[int64]int
}

func (s remembersWhatIsKnown) Resolve(ctx context.Context, as admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	for _, r := range rows {
		if now, err := s.Store.Rows(ctx, store.RowFilter{Numbers: []int64{r.Number}}); err == nil && len(now) == 1 {
			s.known[r.Number] = now[0].CallsFinished
		}
	}
	return s.Store.Resolve(ctx, as, a, rows...)
}

func (s remembersWhatIsKnown) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
	rows, err := s.Store.Rows(ctx, f)
	for i := range rows {
		if known := s.known[rows[i].Number]; rows[i].CallsStarted == 0 {
			rows[i].CallsStarted, rows[i].CallsFinished = known, known
		}
	}
	return rows, err
}

var callFaults = []fault{
	{"an earlier call is forgotten", "E3_a_call_is_remembered", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Finished = max(c.Started-1, 0) }}
	}},
	{"the window begins anew with each call", "E3_a_call_is_remembered", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Since = 0 }}
	}},
	{"a start under a token that does not stand is one", "law_5_each_of_several", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Stands = true }}
	}},
	{"a start extends no lease", "law_5_each_of_several", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return startsBriefly{s} }},
	{"an end says nothing of calls", "E3_what_is_known_of_calls", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, end: func(e *store.ClaimEnding) { e.Call = store.CallNone }}
	}},
	{"one call that failed speaks for those before", "E3_what_is_known_of_calls", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, end: func(e *store.ClaimEnding) {
			if e.Call == store.CallFailed {
				e.Call = store.CallDecided
			}
		}}
	}},
	{"a call that was not made is unknown", "E3_a_call_that_was_not_made", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, end: func(e *store.ClaimEnding) {
			if e.Call == store.CallNotMade {
				e.Call = store.CallUnknown
			}
		}}
	}},
	{"a retry is blind", "trap_T77", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return retriesBlindly{s} }},
	{"what is known is resolved", "E3_what_is_known_is_not_resolved", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return resolvesWhatIsKnown{s} }},
	{"only what was unknown is forgotten", "E3_what_was_not_done", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return remembersWhatIsKnown{s, map[int64]int{}}
	}},
	{"what was done is called for again", "E3_what_was_done", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return believesNobody{s} }},
}

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

// wrongGathers is a store with a fault in transactions that claims share.
type wrongGathers struct {
	*memstore.Store
	commit func(ctx context.Context, s *memstore.Store, all []admin.QueuedBatch[*memstore.Tx]) store.Result
}

func (s wrongGathers) CommitCombined(ctx context.Context, _ store.TxOptions, all []admin.QueuedBatch[*memstore.Tx]) store.Result {
	return s.commit(ctx, s.Store, all)
}

var gatherFaults = []fault{
	{"what shares a transaction commits one after the other", "law_5_a_claim_that_is_lost", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []admin.QueuedBatch[*memstore.Tx]) (r store.Result) {
			for i := range all {
				if r = s.CommitCombined(ctx, store.TxOptions{}, all[i:i+1]); r.Outcome != store.Committed {
					return r
				}
			}
			return r
		}}
	}},
	{"only the first of a shared transaction is written", "K10_law_1_claims_that_share", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []admin.QueuedBatch[*memstore.Tx]) store.Result {
			return s.CommitCombined(ctx, store.TxOptions{}, all[:1])
		}}
	}},
	{"a shared transaction does not ask whether claims stand", "law_5_a_claim_that_ended", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []admin.QueuedBatch[*memstore.Tx]) store.Result {
			r := s.CommitCombined(ctx, store.TxOptions{}, all)
			if r.Class != store.ClassClaimLost {
				return r
			}
			b, _, err := s.Begin(ctx, store.TxOptions{}, nil)
			if err != nil {
				return r
			}
			_ = b.Tx(store.All).Add("a", 1)
			return b.Commit(ctx, store.Ending{})
		}}
	}},
}
