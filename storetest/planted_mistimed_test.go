package storetest_test

import (
	"context"
	"time"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// keepsWrong has something wrong in what it keeps of a retention.
type keepsWrong struct {
	*memstore.Store
	retain   func(*store.Retention)
	progress func([]source.LaneAge) []source.LaneAge
	before   func(ctx context.Context, o store.Reaping)
	reaped   func(o store.Reaping, done *store.Reaped)
	never    bool // anything was removed
}

func (s *keepsWrong) Retain(ctx context.Context, r store.Retention) error {
	if s.retain != nil {
		s.retain(&r)
	}
	return s.Store.Retain(ctx, r)
}

func (s *keepsWrong) Progressed(ctx context.Context, consumer string, lanes []source.LaneAge) error {
	if s.progress != nil {
		lanes = s.progress(lanes)
	}
	return s.Store.Progressed(ctx, consumer, lanes)
}

func (s *keepsWrong) Reap(ctx context.Context, o store.Reaping) (store.Reaped, error) {
	if s.before != nil {
		s.before(ctx, o)
	}
	done, err := s.Store.Reap(ctx, o)
	if s.reaped != nil {
		s.reaped(o, &done)
	}
	return done, err
}

func (s *keepsWrong) Removed(ctx context.Context, consumer string) (time.Time, error) {
	if s.never {
		return time.Time{}, nil
	}
	return s.Store.Removed(ctx, consumer)
}

// retentionFaults are faults of what removes, and the cases that find them.
var retentionFaults = []fault{
	{"nobody is asked for the age of a copy", "H3_what_is_due_is_removed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m store.Mark) store.Mark { m.Age = time.Time{}; return m }}
	}},
	{"what is dated ahead runs", "H4_what_is_dated_ahead", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, verdict: func(_ store.Mark, v store.Verdict) store.Verdict {
			if v.Ahead {
				v = store.Verdict{Kind: store.Fresh}
			}
			return v
		}}
	}},
	{"the reaper cannot be switched off", "H1_nothing_is_removed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *store.Retention) { r.Off = false }}
	}},
	{"a horizon that has grown stops nobody", "H1_nothing_is_removed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *store.Retention) { r.Horizon = 0 }}
	}},
	{"bodies stay", "D7_", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *store.Retention) { r.Bodies = 0 }}
	}},
	{"lanes that are behind are not kept", "H2_one_lane_that_is_behind", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, progress: func([]source.LaneAge) []source.LaneAge { return nil }}
	}},
	{"the mark alone says what is due", "H2_a_cutoff_that_goes_back", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, before: func(ctx context.Context, o store.Reaping) {
			if all, _ := s.Retentions(ctx, o.Consumer); len(all) == 1 && all[0].Keep == time.Hour {
				all[0].Keep = time.Millisecond
				_ = s.Retain(ctx, all[0].Retention)
			}
		}}
	}},
	{"a pass begins anew with each call", "trap_124", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, reaped: func(_ store.Reaping, done *store.Reaped) {
			if !done.Next.Done {
				done.Next = store.ReapMark{}
			}
		}}
	}},
	{"nothing was ever removed", "A7_H4_a_scope_that_is_new", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, never: true}
	}},
}
