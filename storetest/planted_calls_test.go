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

// wrongCalls is a store that records calls wrongly.
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

// startsBriefly is a store that records the start of calls without extending the leases.
type startsBriefly struct{ *memstore.Store }

func (s startsBriefly) StartCalls(ctx context.Context, claims []store.Claim, _ time.Duration) ([]store.CallStarted, error) {
	return s.Store.StartCalls(ctx, claims, 0)
}

// retriesUnknown is a store that lets operators retry rows whose call has an unknown outcome.
type retriesUnknown struct{ *memstore.Store }

func (s retriesUnknown) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	errs := s.Store.Requeue(ctx, a, rows...)
	for i, r := range rows {
		now, err := s.Rows(ctx, store.RowFilter{Numbers: []int64{r.Number}})
		if errs[i] != nil && err == nil && len(now) == 1 && now[0].UnknownOutcome() {
			errs[i] = errors.Join(s.Resolve(ctx, admin.ResolvedNotDone, a, r)...)
		}
	}
	return errs
}

// alwaysRepeats is a store that resolves every call as not done, so that the call is repeated.
type alwaysRepeats struct{ *memstore.Store }

func (s alwaysRepeats) Resolve(ctx context.Context, _ admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	return s.Store.Resolve(ctx, admin.ResolvedNotDone, a, rows...)
}

// resolvesKnown is a store that lets operators resolve rows that have no unknown outcome.
type resolvesKnown struct{ *memstore.Store }

func (s resolvesKnown) Resolve(ctx context.Context, as admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	errs := s.Store.Resolve(ctx, as, a, rows...)
	for i, r := range rows {
		now, err := s.Rows(ctx, store.RowFilter{Numbers: []int64{r.Number}})
		if err == nil && len(now) == 1 && now[0].State == store.StateParked && now[0].CallsFinished > 0 {
			errs[i] = nil
		}
	}
	return errs
}

// keepsKnownCalls is a store with a fault. When an operator resolves calls as not done, the store removes only the
// calls with an unknown outcome from the counts of the row.
type keepsKnownCalls struct {
	*memstore.Store
	known map[int64]int
}

func (s keepsKnownCalls) Resolve(ctx context.Context, as admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	for _, r := range rows {
		if now, err := s.Store.Rows(ctx, store.RowFilter{Numbers: []int64{r.Number}}); err == nil && len(now) == 1 {
			s.known[r.Number] = now[0].CallsFinished
		}
	}
	return s.Store.Resolve(ctx, as, a, rows...)
}

func (s keepsKnownCalls) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
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
	{"the time of the first call changes with each call", "E3_a_call_is_remembered", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Since = 0 }}
	}},
	{"a start under a stale token is reported as valid", "law_5_each_of_several", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, told: func(c *store.CallStarted) { c.Stands = true }}
	}},
	{"a start extends no lease", "law_5_each_of_several", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return startsBriefly{s} }},
	{"the end of a claim does not record the call", "E3_the_end_of_a_claim_settles_calls", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, end: func(e *store.ClaimEnding) { e.Call = store.CallNone }}
	}},
	{"a failed call settles the calls before it", "E3_the_end_of_a_claim_settles_calls", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, end: func(e *store.ClaimEnding) {
			if e.Call == store.CallFailed {
				e.Call = store.CallDecided
			}
		}}
	}},
	{"a call that was not made counts as unknown", "E3_a_call_that_was_not_made", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongCalls{Store: s, end: func(e *store.ClaimEnding) {
			if e.Call == store.CallNotMade {
				e.Call = store.CallUnknown
			}
		}}
	}},
	{"a row with an unknown outcome is retried", "trap_T77", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return retriesUnknown{s} }},
	{"a row with a known outcome is resolved", "E3_a_known_outcome_cannot_be_resolved", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return resolvesKnown{s} }},
	{"resolving forgets only the unknown calls", "E3_a_call_resolved_as_not_done_is_due", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return keepsKnownCalls{s, map[int64]int{}}
	}},
	{"a call that was done is repeated", "E3_a_call_resolved_as_done_completes_its_row", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return alwaysRepeats{s} }},
}

// endsClaims is a store that changes each store.ClaimEnding before memstore gets it.
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

// ending returns a function that creates a store. This store changes each store.ClaimEnding with the function change.
func ending(change func(*store.ClaimEnding)) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return endsClaims{s, change} }
}

// omitsLastStep is a store that returns claimed rows without their last step.
type omitsLastStep struct{ *memstore.Store }

func (s omitsLastStep) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	all, err := s.Store.Claim(ctx, o)
	for i := range all {
		all[i].Row.Steps = all[i].Row.Steps[:max(len(all[i].Row.Steps)-1, 0)]
	}
	return all, err
}

// recordsFirst is a store that ends claims in a separate commit, before the commit of their effects.
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

// ignoresToken is a store that ends a claim whatever its token is, by replacing the token with the last issued token.
type ignoresToken struct {
	*memstore.Store
	mutex sync.Mutex
	last  map[int64]store.Token
}

func (s *ignoresToken) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	all = slices.Clone(all)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range all {
		all[i].Token = s.last[all[i].Number]
	}
	return s.Store.End(ctx, all)
}

func (s *ignoresToken) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
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
	{"a claim lacks its last step", "C11_a_step_is_written", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return omitsLastStep{s} }},
	{"a step is recorded before its effect", "law_5_a_stale_token_ends_no_step", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return recordsFirst{s} }},
	{"a late token ends a step", "law_5_a_stale_token_ends_no_step", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &ignoresToken{Store: s, last: map[int64]store.Token{}}
	}},
	{"outputs are not kept", "C11_a_step_is_written", ending(func(e *store.ClaimEnding) {
		e.Steps = slices.Clone(e.Steps)
		for i := range e.Steps {
			e.Steps[i].Output = nil
		}
	})},
	{"a step keeps the attempts before it", "C11_each_step_resets_the_attempts", ending(func(e *store.ClaimEnding) {
		e.Stepped = false
	})},
	{"a step ends its message", "C11_a_step_is_written", ending(func(e *store.ClaimEnding) {
		if e.Stepped {
			e.State, e.Stepped = store.StateCompleted, false
		}
	})},
	{"a failure removes steps", "C11_steps_outlive", ending(func(e *store.ClaimEnding) {
		if e.State == store.StateFailedRetryable {
			e.Steps = []store.StepDone{}
		}
	})},
}

// wrongGathers is a store with a fault in transactions that end several claims.
type wrongGathers struct {
	*memstore.Store
	commit func(ctx context.Context, s *memstore.Store, all []admin.QueuedBatch[*memstore.Tx]) store.Result
}

func (s wrongGathers) CommitCombined(ctx context.Context, _ store.TxOptions, all []admin.QueuedBatch[*memstore.Tx]) store.Result {
	return s.commit(ctx, s.Store, all)
}

var gatherFaults = []fault{
	{"batches of a shared transaction commit one after the other", "law_5_a_claim_that_is_lost_leaves", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []admin.QueuedBatch[*memstore.Tx]) (r store.Result) {
			for i := range all {
				if r = s.CommitCombined(ctx, store.TxOptions{}, all[i:i+1]); r.Outcome != store.Committed {
					return r
				}
			}
			return r
		}}
	}},
	{"only the first batch of a shared transaction is written", "K10_law_1_claims_that_share", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []admin.QueuedBatch[*memstore.Tx]) store.Result {
			return s.CommitCombined(ctx, store.TxOptions{}, all[:1])
		}}
	}},
	{"a shared transaction does not check its claims", "law_5_a_claim_that_ended", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
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
