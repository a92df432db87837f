package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Claim implements store.Leases.
func (s *Store) Claim(_ context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	before, after := s.ask("claim-before"), s.ask("claim-after")
	if before != nil {
		return nil, before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, bytes := s.now(), int64(0)
	s.cutAhead(&o, now)
	var taken []store.Claimed
	for _, r := range s.claimable(o.Consumer, now) {
		if s.endUnclaimable(r) {
			continue
		}
		if len(o.Numbers) > 0 && !slices.Contains(o.Numbers, r.Number) {
			continue
		}
		if len(taken) == o.Most || len(taken) > 0 && o.Bytes > 0 && bytes+int64(r.Size) > o.Bytes {
			break
		}
		bytes += int64(r.Size)
		suspect := r.State == store.StateInProgress || r.Started > 0
		if suspect {
			r.Started = max(r.Started, 1)
		}
		blocked := r.State == store.StateBlocked
		s.become(r, admin.RowClaimed)
		r.token, r.LockedUntil = o.Token, now.Add(o.Lease)
		taken = append(taken, store.Claimed{Claim: r.claim(), Row: shownRow(r, true), Left: o.Lease, Suspect: suspect, Blocked: blocked})
	}
	if after != nil {
		return nil, after
	}
	return taken, nil
}

// claimable returns the rows of a consumer that can be claimed now, the longest waiting row first. The caller has
// locked the store.
func (s *Store) claimable(consumer string, now time.Time) (due []*row) {
	for _, r := range s.rows {
		if r.State.Outcome() == store.Waiting && !r.waitsInLine() && r.Key.Consumer == consumer && !r.claimableAt().After(now) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *row) int {
		return cmp.Or(a.claimableAt().Compare(b.claimableAt()), cmp.Compare(a.Number, b.Number))
	})
	return due
}

// claimableAt returns when a row can be claimed. For a row in progress, the result is the end of the lease.
func (r *row) claimableAt() time.Time {
	if r.State == store.StateInProgress {
		return r.LockedUntil
	}
	return r.DueAt
}

func (r *row) claim() store.Claim { return store.Claim{Number: r.Number, Token: r.token} }

// become applies an event to a row. The event must be allowed in the state of the row. The caller holds the
// store's lock.
func (s *Store) become(r *row, e admin.RowEvent) {
	next, legal := admin.After(r.State, e)
	if !legal {
		panic(fmt.Sprintf("memstore: row %d is %s, where the event %s is not legal", r.Number, r.State, e))
	}
	s.setState(r, next)
}

// setState changes the state of a row and ends the claim. If the marker belongs to the row, setState also
// changes the marker. The caller holds the store's lock.
func (s *Store) setState(r *row, next store.RowState) {
	if s.owns(r) {
		s.setOutcome(r.key.identity, next.Outcome())
	}
	r.State, r.token = next, 0
	r.DueAt, r.LockedUntil = time.Time{}, time.Time{}
	s.touch(r)
	if next == store.StateCompleted {
		r.ended = r.ChangedAt
	}
}

// rowOfClaim returns the row of a claim, or nil if the claim is not valid. The caller has locked the store.
func (s *Store) rowOfClaim(c store.Claim) *row {
	r := s.rowByNumber(c.Number)
	if r == nil || c.Token == 0 || r.token != c.Token || r.State != store.StateInProgress {
		return nil
	}
	return r
}

// checkClaim returns the store's answer for a mark that checks a claim. The caller has locked the store.
func (s *Store) checkClaim(c store.Claim) store.Verdict {
	if r := s.rowOfClaim(c); r != nil && r.LockedUntil.After(s.now()) && s.checkEndings([]store.ClaimEnding{{Claim: c}}) == nil {
		return store.Verdict{Kind: store.Fresh}
	}
	return store.Verdict{Kind: store.ClaimLost}
}

// checkEndings returns an error for the first ending whose claim is not valid, or whose marker does not have the
// outcome Waiting for the row. The caller has locked the store.
func (s *Store) checkEndings(endings []store.ClaimEnding) error {
	for _, e := range endings {
		r := s.rowOfClaim(e.Claim)
		if r == nil || s.markers[r.key.identity].outcome != store.Waiting || !s.owns(r) {
			return fmt.Errorf("row %d: %w", e.Number, store.ErrClaimLost)
		}
	}
	return nil
}

// Held implements store.Leases.
func (s *Store) Held(_ context.Context, consumer string, t store.Token) ([]store.Claimed, error) {
	if err := s.lock("claim-before"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.now()
	var held []store.Claimed
	for _, r := range s.rows {
		if r.Key.Consumer == consumer && s.rowOfClaim(store.Claim{Number: r.Number, Token: t}) != nil {
			// The store does not know which process had the claim; the message may have crashed that process.
			held = append(held, store.Claimed{Claim: r.claim(), Row: shownRow(r, true), Left: r.LockedUntil.Sub(now), Suspect: true})
		}
	}
	return held, nil
}

// Extend implements store.Leases.
func (s *Store) Extend(_ context.Context, claims []store.Claim, lease time.Duration) ([]int, error) {
	return s.forEachClaimed(claims, func(r *row) { r.extend(s.now(), lease) })
}

// extend sets the end of the lease to the given duration from now, unless the lease already ends later. The method also
// sets ChangedAt, because the start of the lease is computed from ChangedAt.
func (r *row) extend(now time.Time, lease time.Duration) {
	r.cutAhead(now)
	if until := now.Add(lease); until.After(r.LockedUntil) {
		r.LockedUntil = until
	}
	r.ChangedAt = now
}

// Start implements store.Leases.
func (s *Store) Start(_ context.Context, claims []store.Claim) ([]int, error) {
	return s.forEachClaimed(claims, func(r *row) {
		r.Started++
		s.touchWaiting(r)
	})
}

// forEachClaimed calls the function do for the row of each valid claim, and returns the indexes of the claims that are
// not valid.
func (s *Store) forEachClaimed(claims []store.Claim, do func(*row)) (lost []int, err error) {
	if err := s.lock("claim-before"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for i, c := range claims {
		if r := s.rowOfClaim(c); r != nil {
			do(r)
		} else {
			lost = append(lost, i)
		}
	}
	return lost, nil
}

// End implements store.Leases.
func (s *Store) End(_ context.Context, endings []store.ClaimEnding) (lost []int, err error) {
	before, after := s.ask("claim-before"), s.ask("claim-after")
	if before != nil {
		return nil, before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range endings {
		if r := s.rowOfClaim(endings[i].Claim); r != nil && s.checkEndings(endings[i:i+1]) == nil {
			s.endClaim(r, &endings[i])
		} else {
			lost = append(lost, i)
		}
	}
	if after != nil {
		return nil, after
	}
	return lost, nil
}

// endClaim ends a valid claim. The result freed is true if the end unblocks a later row. The caller has locked the
// store.
func (s *Store) endClaim(r *row, e *store.ClaimEnding) (freed bool) {
	r.endCall(e.Call, r.token)
	s.setState(r, e.State)
	switch {
	case !e.Released():
		r.Started = 0
	case e.Began:
		r.Started--
	}
	if e.Ran {
		r.Attempts++
	}
	if e.Steps != nil {
		r.Steps = steps(e.Steps)
	}
	if e.Stepped {
		r.Attempts = 0
	}
	if r.State.Outcome() == store.Waiting {
		r.DueAt = s.now().Add(e.After)
	}
	if e.State == store.StateBlocked {
		r.Stream, r.Version = string(e.Version.Stream), e.Version.Number
	}
	if e.Reason != "" {
		r.Reason = e.Reason
	}
	if e.Error != "" {
		r.LastError = cut(e.Error)
		if r.FirstError == "" {
			r.FirstError = r.LastError
		}
	}
	return e.State.Ended() && s.advance(r)
}

// Reclaim implements store.Leases.
func (s *Store) Reclaim(_ context.Context, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error) {
	before, after := s.ask("claim-before"), s.ask("claim-after")
	if before != nil {
		return nil, before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]store.Reclaimed, len(numbers))
	for i, n := range numbers {
		r := s.rowByNumber(n)
		if r == nil {
			continue
		}
		if slices.Contains(from, r.token) && s.rowOfClaim(r.claim()) != nil {
			r.token, all[i].Taken = to, true
			s.touchWaiting(r)
		}
		all[i].State = r.State
	}
	if after != nil {
		return nil, after
	}
	return all, nil
}

// cutAhead shortens the delays and leases of rows that were written while the clock was ahead. Only the rows in
// o.Numbers are examined, or all rows if o.Numbers is empty. The caller has locked the store.
func (s *Store) cutAhead(o *store.ClaimOptions, now time.Time) {
	rows, furthest := 0, time.Duration(0)
	for _, r := range s.rows {
		if r.State.Outcome() != store.Waiting || r.waitsInLine() || len(o.Numbers) > 0 && !slices.Contains(o.Numbers, r.Number) {
			continue
		}
		if by := r.cutAhead(now); by > 0 {
			rows, furthest = rows+1, max(furthest, by)
		}
	}
	if rows > 0 && o.Ahead != nil {
		o.Ahead(rows, furthest)
	}
}

// cutAhead checks whether a row was written while the clock was ahead. If the clock was ahead, the row's delay or lease
// starts now, and cutAhead returns how far the clock was ahead.
func (r *row) cutAhead(now time.Time) time.Duration {
	by := sqlform.CutAhead(r.ChangedAt, now, &r.DueAt, &r.LockedUntil)
	if by == 0 {
		return 0
	}
	r.ChangedAt, r.CalledAt = now, calls.Known(r.CalledAt, now)
	if r.ReceivedAt.After(now) {
		r.ReceivedAt = now
	}
	return by
}

// touchWaiting does the same as touch, for a row whose delay does not change. If the row was written while the clock
// was ahead, ChangedAt is not changed, because the start of the delay is computed from ChangedAt.
func (s *Store) touchWaiting(r *row) {
	was := r.ChangedAt
	if s.touch(r); was.After(r.ChangedAt) {
		r.ChangedAt = was
	}
}
