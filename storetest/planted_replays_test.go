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

// ignoresReplayToken is a store that saves the progress of a replay whatever token the caller has.
type ignoresReplayToken struct {
	*memstore.Store
	tokens *sync.Map
}

func (s ignoresReplayToken) NewReplay(ctx context.Context, r admin.Replay, t store.Token, lease time.Duration, a store.Act) (int64, error) {
	n, err := s.Store.NewReplay(ctx, r, t, lease, a)
	s.tokens.Store(n, t)
	return n, err
}

func (s ignoresReplayToken) SaveReplay(ctx context.Context, number int64, _ store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	t, _ := s.tokens.Load(number)
	token, _ := t.(store.Token)
	return s.Store.SaveReplay(ctx, number, token, lease, p)
}

// allowsManyReplays is a store that lets a consumer have any number of open replays, each in a generation of its own.
type allowsManyReplays struct{ *memstore.Store }

func (s allowsManyReplays) NewReplay(ctx context.Context, r admin.Replay, t store.Token, lease time.Duration, a store.Act) (int64, error) {
	for {
		n, err := s.Store.NewReplay(ctx, r, t, lease, a)
		if err == nil {
			return n, nil
		}
		r.Generation++
	}
}

// hidesStop is a store that hides from a replay's process that an operator has stopped the replay.
type hidesStop struct{ *memstore.Store }

func (s hidesStop) SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	_, err := s.Store.SaveReplay(ctx, number, t, lease, p)
	return admin.ReplayRunning, err
}

// resumesFinished is a store that lets a process resume a replay that has finished.
type resumesFinished struct{ *memstore.Store }

func (s resumesFinished) TakeReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, a store.Act) (admin.Replay, error) {
	r, err := s.Store.TakeReplay(ctx, number, t, lease, a)
	if err == nil {
		return r, nil
	}
	return s.Replay(ctx, number)
}

// recordsProgress is a store that writes an audit record whenever a process saves the progress of a replay.
type recordsProgress struct{ *memstore.Store }

func (s recordsProgress) SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	state, err := s.Store.SaveReplay(ctx, number, t, lease, p)
	if err != nil {
		return state, err
	}
	return state, s.Record(ctx, store.Act{Verb: "replay save", Who: "nobody"})
}

// previewsFresh is a store that predicts Fresh for every message. previewWrites is a store that writes a marker for
// each message for which it predicts Fresh.
type (
	previewsFresh struct{ *memstore.Store }
	previewWrites struct{ *memstore.Store }
)

func (s previewsFresh) Preview(_ context.Context, _ string, _ int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(all))
	for i := range verdicts {
		verdicts[i].Kind = store.Fresh
	}
	return verdicts, nil
}

func (s previewWrites) Preview(ctx context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
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
	{"progress is saved whatever its token", "law_5_a_replay", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return ignoresReplayToken{s, &sync.Map{}}
	}},
	{"two replays of a consumer begin", "trap_T47_one_replay", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return allowsManyReplays{s} }},
	{"a stop is not reported to the running process", "G1_a_replay_is_stopped", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return hidesStop{s} }},
	{"a finished replay is resumed", "G1_a_finished_replay_is_not_resumed", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return resumesFinished{s} }},
	{"progress is recorded as an act", "law_14_who_replays", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return recordsProgress{s} }},
	{"a preview predicts fresh for everything", "G4_a_preview_predicts_the_verdict_of_a_mark", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return previewsFresh{s} }},
	{"a preview writes markers", "G4_a_preview_predicts_the_verdict_of_a_mark", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return previewWrites{s} }},
}

// omitsOperator is a store that does not record which operator switched a generation.
type omitsOperator struct{ *memstore.Store }

func (s omitsOperator) SwitchGeneration(ctx context.Context, consumer string, from, to int64, a store.Act) error {
	a.Who = ""
	return s.Store.SwitchGeneration(ctx, consumer, from, to, a)
}

// liftsAllFences is a store that also lifts the fences of another consumer.
type liftsAllFences struct{ *memstore.Store }

func (s liftsAllFences) LiftFences(ctx context.Context, consumer string) error {
	if err := s.Store.LiftFences(ctx, "other"); err != nil {
		return err
	}
	return s.Store.LiftFences(ctx, consumer)
}

// dropKeepsRows is a store that removes no rows when a generation is dropped.
type dropKeepsRows struct{ *memstore.Store }

func (dropKeepsRows) ForgetGeneration(context.Context, string, int64, int) (int, error) {
	return 0, nil
}

// previewsFirst is a store that uses, for predictions, the markers of the first derivation (rule that forms
// identities).
type previewsFirst struct{ *memstore.Store }

func (s previewsFirst) Preview(ctx context.Context, consumer string, _ int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	return s.Store.Preview(ctx, consumer, 0, all)
}

var generationFaults = []fault{
	{"the operator of a switch is not recorded", "law_14_who_opens", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return omitsOperator{s} }},
	{"the fences of all are lifted", "G2_the_fences_of_another", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return liftsAllFences{s} }},
	{"a drop leaves messages", "P4_G2_of_a_dropped_generation", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return dropKeepsRows{s} }},
	{"all derivations are previewed as the first", "G4_a_preview_predicts_the_verdict_of_a_mark", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return previewsFirst{s} }},
}

// lowersOffsets is a store that writes every offset, also an offset that is lower than the stored one.
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

// advancesEach is a store that advances the offset of each lane in a separate commit.
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

// wrongOffsets is a store that changes the offsets that it writes or returns.
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

// keepsWrong is a store that stores the retention policy, or computes the cutoff, wrongly.
type keepsWrong struct {
	*memstore.Store
	retain   func(*store.Retention)
	progress func([]source.LaneAge) []source.LaneAge
	before   func(ctx context.Context, o store.Reaping)
	reaped   func(o store.Reaping, done *store.Reaped)
	never    bool // the store acts as if nothing had ever been removed
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

// retentionFaults lists faults in the removal of old markers, each with the case that must find the fault.
var retentionFaults = []fault{
	{"the age of a copy is ignored", "H3_a_due_marker_is_removed_and_its_copy_is_old", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, mark: func(m store.Mark) store.Mark { m.Age = time.Time{}; return m }}
	}},
	{"a message dated in the future runs", "H4_a_message_dated_in_the_future_is_old_after_a_removal", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, verdict: func(_ store.Mark, v store.Verdict) store.Verdict {
			if v.Ahead {
				v = store.Verdict{Kind: store.Fresh}
			}
			return v
		}}
	}},
	{"the reaper cannot be switched off", "H1_nothing_is_removed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *store.Retention) { r.Off = false }}
	}},
	{"a longer redelivery horizon does not stop the reaper", "H1_nothing_is_removed", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *store.Retention) { r.Horizon = 0 }}
	}},
	{"bodies stay", "D7_", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, retain: func(r *store.Retention) { r.Bodies = 0 }}
	}},
	{"lanes that lag are ignored", "H2_a_lagging_lane_holds_the_cutoff", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, progress: func([]source.LaneAge) []source.LaneAge { return nil }}
	}},
	{"only the low-water mark decides what is removed", "H2_a_cutoff_that_goes_back", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, before: func(ctx context.Context, o store.Reaping) {
			if all, _ := s.Retentions(ctx, o.Consumer); len(all) == 1 && all[0].Keep == time.Hour {
				all[0].Keep = time.Millisecond
				_ = s.Retain(ctx, all[0].Retention)
			}
		}}
	}},
	{"a pass restarts with each call", "trap_124", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, reaped: func(_ store.Reaping, done *store.Reaped) {
			if !done.Next.Done {
				done.Next = store.ReapMark{}
			}
		}}
	}},
	{"a new scope ignores earlier removals", "A7_H4_a_new_scope_begins_at_the_low_water_mark", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &keepsWrong{Store: s, never: true}
	}},
}
