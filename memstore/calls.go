package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// StartCalls implements contract.Calls.
func (s *Store) StartCalls(_ context.Context, claims []contract.Claim, lease time.Duration) ([]contract.CallStarted, error) {
	before, after := s.ask("claim-before"), s.ask("claim-after")
	if before != nil {
		return nil, before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	all := make([]contract.CallStarted, len(claims))
	for i, c := range claims {
		r := s.claimed(c)
		if r == nil {
			continue
		}
		if r.called != c.Token {
			r.called = c.Token
			r.CallsStarted++
		}
		if r.CalledAt.IsZero() {
			r.CalledAt = now
		}
		if until := now.Add(lease); until.After(r.LockedUntil) {
			r.LockedUntil = until
		}
		s.touch(r)
		all[i] = contract.CallStarted{Stands: true, Started: r.CallsStarted, Finished: r.CallsFinished, Since: max(now.Sub(r.CalledAt), 0)}
	}
	if after != nil {
		return nil, after
	}
	return all, nil
}

// endCall notes what became of a call that was made under the row's claim, whose token it
// was.
func (r *row) endCall(o contract.CallOutcome, t contract.Token) {
	begun := t != 0 && r.called == t
	switch {
	case o == contract.CallNone:
		return
	case o == contract.CallDecided:
		r.CallsFinished = r.CallsStarted
	case o == contract.CallFailed && begun:
		r.CallsFinished++
	case o == contract.CallNotMade && begun:
		if r.CallsStarted--; r.CallsStarted == 0 {
			r.CalledAt = time.Time{}
		}
	}
	r.called = 0
}

// Resolve implements contract.Resolver.
func (s *Store) Resolve(ctx context.Context, number, revision int64, found contract.Resolution, a contract.Act) error {
	if err := found.Fits(); err != nil {
		return err
	}
	if err := s.ask("rows"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(ctx, number, revision)
	if err != nil {
		return err
	}
	if err := contract.MayResolve(number, r.State, r.UnknownOutcome()); err != nil {
		return err
	}
	if m := s.markers[r.key.identity]; r.State.Outcome() != contract.Waiting && (m.outcome == contract.Applied || m.outcome == contract.Waiting) {
		return fmt.Errorf("row %d: %w", number, semel.ErrConflict)
	}
	s.markers[r.key.identity] = marker{fingerprint: r.Fingerprint, outcome: contract.Waiting, at: s.now()}
	r.called, r.Started = 0, 0
	if found == contract.ResolvedDone {
		s.become(r, contract.RowResolved)
		r.CallsFinished = r.CallsStarted
		s.advance(r)
	} else {
		if r.State == contract.StateDeadLettered {
			r.Place = 0 // it has left its line
		}
		s.become(r, contract.RowRetried)
		r.DueAt, r.CalledAt = s.now(), time.Time{}
		r.CallsStarted, r.CallsFinished = 0, 0
	}
	s.record(a, number, "done")
	return nil
}
