package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

// StartCalls implements store.Leases.
func (s *Store) StartCalls(_ context.Context, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	before, after := s.ask("claim-before"), s.ask("claim-after")
	if before != nil {
		return nil, before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	all := make([]store.CallStarted, len(claims))
	for i, c := range claims {
		r := s.rowOfClaim(c)
		if r == nil || s.checkEndings([]store.ClaimEnding{{Claim: c}}) != nil {
			continue
		}
		l := r.ledger()
		all[i] = l.Start(c.Token, now)
		all[i].Again = r.again
		r.keep(l)
		r.extend(now, lease)
		s.touch(r)
	}
	if after != nil {
		return nil, after
	}
	return all, nil
}

// ledger returns the recorded calls of the row.
func (r *row) ledger() calls.Ledger {
	return calls.Ledger{Started: r.CallsStarted, Finished: r.CallsFinished, First: r.CalledAt, Token: r.called}
}

func (r *row) keep(l calls.Ledger) {
	r.CallsStarted, r.CallsFinished, r.CalledAt, r.called = l.Started, l.Finished, l.First, l.Token
}

// endCall records the outcome of a call under the claim with this token.
func (r *row) endCall(o store.CallOutcome, t store.Token) {
	l := r.ledger()
	l.End(o, t)
	r.keep(l)
}

// Resolve implements admin.Resolver.
func (s *Store) Resolve(ctx context.Context, found admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	if err := found.Fits(); err != nil {
		return slices.Repeat([]error{err}, len(rows))
	}
	return s.eachRow(ctx, a, found.String(), rows, func(r *row) error {
		if err := admin.MayAct(admin.RowResolved, &r.StoredRow, false); err != nil {
			return err
		}
		others := s.otherRows(r)
		if found == admin.ResolvedDone {
			others = nil // if the effect exists, the calls of other rows make no difference
		}
		if err := s.takeMarker(r, others); err != nil {
			return err
		}
		r.called, r.Started = 0, 0
		if found == admin.ResolvedDone {
			s.become(r, admin.RowResolved)
			r.CallsFinished = r.CallsStarted
			s.advance(r)
		} else {
			if r.State == store.StateDeadLettered {
				r.Place = 0 // the row leaves its line
			}
			s.become(r, admin.RowRetried)
			r.DueAt, r.CalledAt = s.now(), time.Time{}
			r.CallsStarted, r.CallsFinished, r.again = 0, 0, false
		}
		return nil
	})
}
