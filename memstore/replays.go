package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// mostReplays is the default limit of ReplaysOf.
const mostReplays = 1000

// replay is a stored replay.
type replay struct {
	sqlform.Replay
	until time.Time // end of its lease
}

// The method as returns the replay with the times of the store's clock.
func (r *replay) as(now time.Time) sqlform.Replay {
	told := r.Replay
	told.Left = max(r.until.Sub(now), 0)
	told.Progress = cloneProgress(told.Progress)
	return told
}

func cloneProgress(p admin.ReplayProgress) admin.ReplayProgress {
	p.Lanes = slices.Clone(p.Lanes)
	if p.Prediction != nil {
		own := *p.Prediction
		p.Prediction = &own
	}
	return p
}

// soleReplay returns an error if the consumer has another open replay in the same generation. The caller holds
// s.mu.
func (s *Store) soleReplay(of *admin.Replay) error {
	for _, r := range s.replays {
		if r.Number != of.Number && r.Consumer == of.Consumer && r.Generation == of.Generation && !r.State.Ended() {
			return fmt.Errorf("replay %d: %w", r.Number, admin.ErrReplayOpen)
		}
	}
	return nil
}

// NewReplay implements admin.Replays.
func (s *Store) NewReplay(_ context.Context, r admin.Replay, t store.Token, lease time.Duration, a store.Act) (int64, error) {
	if err := s.lock("replay"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	now := s.now()
	r.Number, r.State, r.Start, r.Saved = int64(len(s.replays))+1, admin.ReplayRunning, admin.Order{By: a.Who, Why: a.Why, At: now}, now
	if err := s.soleReplay(&r); err != nil {
		return 0, err
	}
	r.Stop, r.Ended, r.Progress = admin.Order{}, time.Time{}, cloneProgress(r.Progress)
	s.replays = append(s.replays, &replay{sqlform.Replay{Replay: r, Token: t}, now.Add(lease)})
	s.record(sqlform.OfReplay(a, &r), 0, "done")
	return r.Number, nil
}

// change calls the function do for a replay. If the parameter a has a verb, change also writes a as an audit record.
func (s *Store) change(number int64, a store.Act, do func(r *sqlform.Replay, now time.Time) error) (admin.Replay, error) {
	if err := s.lock("replay"); err != nil {
		return admin.Replay{}, err
	}
	defer s.mu.Unlock()
	kept, err := s.replay(number)
	if err != nil {
		return admin.Replay{}, err
	}
	now := s.now()
	r := kept.as(now)
	if err := do(&r, now); err != nil {
		return admin.Replay{}, err
	}
	r.Progress = cloneProgress(r.Progress)
	kept.Replay, kept.until = r, now.Add(r.Left)
	if a.Verb != "" {
		s.record(sqlform.OfReplay(a, &r.Replay), 0, "done")
	}
	return kept.as(now).Replay, nil
}

func (s *Store) replay(number int64) (*replay, error) {
	if number < 1 || number > int64(len(s.replays)) {
		return nil, fmt.Errorf("replay %d: %w", number, admin.ErrNoReplay)
	}
	return s.replays[number-1], nil
}

// TakeReplay implements admin.Replays.
func (s *Store) TakeReplay(_ context.Context, number int64, t store.Token, lease time.Duration, a store.Act) (admin.Replay, error) {
	return s.change(number, a, func(r *sqlform.Replay, _ time.Time) error {
		if err := r.Take(t, lease); err != nil {
			return err
		}
		return s.soleReplay(&r.Replay)
	})
}

// SaveReplay implements admin.Replays.
func (s *Store) SaveReplay(_ context.Context, number int64, t store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	r, err := s.change(number, store.Act{}, func(r *sqlform.Replay, now time.Time) error { return r.Save(t, lease, p, now) })
	return r.State, err
}

// EndReplay implements admin.Replays.
func (s *Store) EndReplay(_ context.Context, number int64, t store.Token, to admin.ReplayState, p admin.ReplayProgress, a store.Act) error {
	_, err := s.change(number, a, func(r *sqlform.Replay, now time.Time) error { return r.End(t, to, p, now) })
	return err
}

// StopReplay implements admin.Replays.
func (s *Store) StopReplay(_ context.Context, number int64, a store.Act) (admin.Replay, error) {
	return s.change(number, a, func(r *sqlform.Replay, now time.Time) error { return r.StopBy(a, now) })
}

// Replay implements admin.Replays.
func (s *Store) Replay(_ context.Context, number int64) (admin.Replay, error) {
	if err := s.lock("replay"); err != nil {
		return admin.Replay{}, err
	}
	defer s.mu.Unlock()
	r, err := s.replay(number)
	if err != nil {
		return admin.Replay{}, err
	}
	return r.as(s.now()).Replay, nil
}

// ReplaysOf implements admin.Replays.
func (s *Store) ReplaysOf(_ context.Context, consumer string, limit int) (all []admin.Replay, err error) {
	if err := s.lock("replay"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, r := range slices.Backward(s.replays) {
		if (consumer == "" || r.Consumer == consumer) && len(all) < cmp.Or(max(limit, 0), mostReplays) {
			all = append(all, r.as(s.now()).Replay)
		}
	}
	return all, nil
}
