package storetest_test

import (
	"context"
	"errors"
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
