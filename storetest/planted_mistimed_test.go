package storetest_test

import (
	"context"
	"time"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

// keepsWrong has something wrong in what it keeps of a retention.
type keepsWrong struct {
	*memstore.Store
	retain   func(*contract.Retention)
	progress func([]contract.LaneAge) []contract.LaneAge
	before   func(ctx context.Context, o contract.Reaping)
	reaped   func(o contract.Reaping, done *contract.Reaped)
	never    bool // anything was removed
}

func (s *keepsWrong) Retain(ctx context.Context, r contract.Retention) error {
	if s.retain != nil {
		s.retain(&r)
	}
	return s.Store.Retain(ctx, r)
}

func (s *keepsWrong) Progressed(ctx context.Context, consumer string, lanes []contract.LaneAge) error {
	if s.progress != nil {
		lanes = s.progress(lanes)
	}
	return s.Store.Progressed(ctx, consumer, lanes)
}

func (s *keepsWrong) Reap(ctx context.Context, o contract.Reaping) (contract.Reaped, error) {
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
	{"nobody is asked for the age of a copy", "H3_what_is_due_is_removed", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &broken{Store: s, mark: func(m contract.Mark) contract.Mark { m.Age = time.Time{}; return m }}
	}},
	{"what is dated ahead runs", "H4_what_is_dated_ahead", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &broken{Store: s, verdict: func(_ contract.Mark, v contract.Verdict) contract.Verdict {
			if v.Ahead {
				v = contract.Verdict{Kind: contract.Fresh}
			}
			return v
		}}
	}},
	{"the reaper cannot be switched off", "H1_nothing_is_removed", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *contract.Retention) { r.Off = false }}
	}},
	{"a horizon that has grown stops nobody", "H1_nothing_is_removed", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *contract.Retention) { r.Horizon = 0 }}
	}},
	{"bodies stay", "D7_", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *contract.Retention) { r.Bodies = 0 }}
	}},
	{"lanes that are behind are not kept", "H2_one_lane_that_is_behind", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, progress: func([]contract.LaneAge) []contract.LaneAge { return nil }}
	}},
	{"the mark alone says what is due", "H2_a_cutoff_that_goes_back", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, before: func(ctx context.Context, o contract.Reaping) {
			if all, _ := s.Retentions(ctx, o.Consumer); len(all) == 1 && all[0].Keep == time.Hour {
				all[0].Keep = time.Millisecond
				_ = s.Retain(ctx, all[0].Retention)
			}
		}}
	}},
	{"a pass begins anew with each call", "trap_124", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, reaped: func(_ contract.Reaping, done *contract.Reaped) {
			if !done.Next.Done {
				done.Next = contract.ReapMark{}
			}
		}}
	}},
	{"nothing was ever removed", "A7_H4_a_scope_that_is_new", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, never: true}
	}},
}
