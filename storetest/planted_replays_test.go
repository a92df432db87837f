package storetest_test

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// heedless keeps the progress of a replay whoever tells it.
type heedless struct {
	*memstore.Store
	tokens *sync.Map
}

func (s heedless) NewReplay(ctx context.Context, r admin.Replay, t store.Token, lease time.Duration, a store.Act) (int64, error) {
	n, err := s.Store.NewReplay(ctx, r, t, lease, a)
	s.tokens.Store(n, t)
	return n, err
}

func (s heedless) SaveReplay(ctx context.Context, number int64, _ store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	t, _ := s.tokens.Load(number)
	token, _ := t.(store.Token)
	return s.Store.SaveReplay(ctx, number, token, lease, p)
}

// crowded lets any number of replays of a consumer be open, each in a generation of its own.
type crowded struct{ *memstore.Store }

func (s crowded) NewReplay(ctx context.Context, r admin.Replay, t store.Token, lease time.Duration, a store.Act) (int64, error) {
	for {
		n, err := s.Store.NewReplay(ctx, r, t, lease, a)
		if err == nil {
			return n, nil
		}
		r.Generation++
	}
}

// unheard does not tell who runs a replay that it is to stop.
type unheard struct{ *memstore.Store }

func (s unheard) SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	_, err := s.Store.SaveReplay(ctx, number, t, lease, p)
	return admin.ReplayRunning, err
}

// undying resumes what is done.
type undying struct{ *memstore.Store }

func (s undying) TakeReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, a store.Act) (admin.Replay, error) {
	r, err := s.Store.TakeReplay(ctx, number, t, lease, a)
	if err == nil {
		return r, nil
	}
	return s.Replay(ctx, number)
}

// talkative records an act whenever progress is kept.
type talkative struct{ *memstore.Store }

func (s talkative) SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	state, err := s.Store.SaveReplay(ctx, number, t, lease, p)
	if err != nil {
		return state, err
	}
	return state, s.Record(ctx, store.Act{Verb: "replay save", Who: "nobody"})
}

// optimist foretells everything fresh; blunt writes what it is asked.
type (
	optimist struct{ *memstore.Store }
	blunt    struct{ *memstore.Store }
)

func (s optimist) Preview(_ context.Context, _ string, _ int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(all))
	for i := range verdicts {
		verdicts[i].Kind = store.Fresh
	}
	return verdicts, nil
}

func (s blunt) Preview(ctx context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	verdicts, err := s.Store.Preview(ctx, consumer, generation, all)
	for i, v := range verdicts {
		if v.Kind == store.Fresh {
			scope, err := s.Scope(ctx, consumer, all[i].Source, generation)
			if err != nil {
				return nil, err
			}
			m := all[i].Mark
			m.Scope = scope
			b, _, err := s.Begin(ctx, store.TxOptions{}, []store.Mark{m})
			if err != nil {
				return nil, err
			}
			b.Commit(ctx, store.Ending{})
		}
	}
	return verdicts, err
}

var replayFaults = []fault{
	{"progress is kept whoever tells it", "law_5_a_replay", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return heedless{s, &sync.Map{}}
	}},
	{"two replays of a consumer begin", "trap_T47_one_replay", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return crowded{s} }},
	{"who runs a replay does not hear of its stop", "G1_a_replay_is_stopped", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return unheard{s} }},
	{"what is done is resumed", "G1_what_is_done", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return undying{s} }},
	{"progress is recorded as an act", "law_14_who_replays", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return talkative{s} }},
	{"everything is foretold fresh", "G4_what_is_foretold", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return optimist{s} }},
	{"what is asked is written", "G4_what_is_foretold", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return blunt{s} }},
}

// unsigned is a store that does not record who switches.
type unsigned struct{ *memstore.Store }

func (s unsigned) SwitchGeneration(ctx context.Context, consumer string, from, to int64, a store.Act) error {
	a.Who = ""
	return s.Store.SwitchGeneration(ctx, consumer, from, to, a)
}

// fenceless is a store that lifts the fences of another consumer, too.
type fenceless struct{ *memstore.Store }

func (s fenceless) LiftFences(ctx context.Context, consumer string) error {
	if err := s.Store.LiftFences(ctx, "other"); err != nil {
		return err
	}
	return s.Store.LiftFences(ctx, consumer)
}

// hoarding is a store that removes nothing of a dropped generation.
type hoarding struct{ *memstore.Store }

func (hoarding) ForgetGeneration(context.Context, string, int64, int) (int, error) { return 0, nil }

// confused is a store that foretells by the first derivation's markers.
type confused struct{ *memstore.Store }

func (s confused) Preview(ctx context.Context, consumer string, _ int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	return s.Store.Preview(ctx, consumer, 0, all)
}

var generationFaults = []fault{
	{"who switches is not recorded", "law_14_who_opens", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return unsigned{s} }},
	{"the fences of all are lifted", "G2_the_fences_of_another", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return fenceless{s} }},
	{"a drop leaves messages", "P4_G2_of_a_dropped_generation", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return hoarding{s} }},
	{"all derivations are foretold as one", "G4_what_is_foretold", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return confused{s} }},
}

// lowersOffsets writes what it is told.
type lowersOffsets struct{ *memstore.Store }

func (s lowersOffsets) AdvanceOffsets(ctx context.Context, consumer string, to []laneoffset.Advance) ([]laneoffset.LaneOffset, error) {
	before, err := s.Store.AdvanceOffsets(ctx, consumer, to)
	for i, a := range to {
		if err == nil && !a.Lacks(before[i]) {
			err = s.SavePosition(ctx, consumer, a.Lane, source.Position{Offset: a.Offset})
		}
	}
	return before, err
}

// advancesEach advances each lane for itself.
type advancesEach struct{ *memstore.Store }

func (s advancesEach) AdvanceOffsets(ctx context.Context, consumer string, to []laneoffset.Advance) (all []laneoffset.LaneOffset, err error) {
	for _, a := range to {
		before, err := s.Store.AdvanceOffsets(ctx, consumer, []laneoffset.Advance{a})
		if err != nil {
			return nil, err
		}
		all = append(all, before...)
	}
	return all, nil
}

// wrongOffsets asks or tells something else.
type wrongOffsets struct {
	*memstore.Store
	ask      func(*laneoffset.Advance)
	tell     func(before, to *laneoffset.LaneOffset)
	consumer string
}

func (s *wrongOffsets) Offsets(ctx context.Context, consumer string, lanes []string) ([]laneoffset.LaneOffset, error) {
	if s.consumer != "" {
		consumer = s.consumer
	}
	return s.Store.Offsets(ctx, consumer, lanes)
}

func (s *wrongOffsets) AdvanceOffsets(ctx context.Context, consumer string, to []laneoffset.Advance) ([]laneoffset.LaneOffset, error) {
	if s.consumer != "" {
		consumer = s.consumer
	}
	asked := append([]laneoffset.Advance{}, to...)
	for i := range asked {
		if s.ask != nil {
			s.ask(&asked[i])
		}
	}
	before, err := s.Store.AdvanceOffsets(ctx, consumer, asked)
	for i := range before {
		if s.tell != nil {
			s.tell(&before[i], &asked[i].LaneOffset)
		}
	}
	return before, err
}

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
