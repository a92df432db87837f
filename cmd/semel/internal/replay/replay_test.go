package replay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestAReplayAppliesMissingMessages(t *testing.T) {
	bubble(t, "G1_law_14_only_what_is_missing_is_applied_and_it_was_foretold", func(t *testing.T) {
		w := newWorld(t, sourceLines(0, 30)+sourceLines(5, 8)+`{"id":"m3","n":99}`+"\n"+`{"id":"m29","n":98}`+"\n"+`{"id":"m29","n":98}`+"\n"+`{"n":1}`+"\n")
		w.runLive(sourceLines(0, 10))
		want := admin.ReplayCounts{Read: 37, Applied: 20, Skipped: 14, Conflicts: 2, Parked: 1}
		if got := w.predict(); got != want {
			t.Errorf("predicted %+v, want %+v", got, want)
		}
		if got := w.predict(); got != want {
			t.Errorf("the prediction has changed something: %+v", got)
		}
		r := w.begin()
		_, state, err := w.run(t.Context(), r, 0)
		if err != nil || state != admin.ReplayDone {
			t.Fatalf("%s, %v", state, err)
		}
		w.wantEffects(0, 30)
		kept, err := w.store.Replay(t.Context(), r.Number)
		if err != nil || kept.Progress.Counts != want || kept.State != admin.ReplayDone || kept.Progress.Lanes[0].After < 0 {
			t.Errorf("the recorded replay is %+v, %v; want %+v", kept, err, want)
		}
		if got := w.predict(); got.Applied+got.Conflicts+got.Parked != 0 || got.Skipped != 37 {
			t.Errorf("a prediction after the replay is %+v", got)
		}
	})
	bubble(t, "G1_a_handler_sees_that_it_runs_in_a_replay", func(t *testing.T) {
		w := newWorld(t, sourceLines(0, 3))
		var seen atomic.Int64
		w.beforeEffect = func(m *semel.Message) error {
			if r, is := m.Replay(); is && r == (semel.Replay{ID: 1}) {
				seen.Add(1)
			}
			return nil
		}
		w.runLive(sourceLines(0, 1))
		if _, _, err := w.run(t.Context(), w.begin(), 0); err != nil || seen.Load() != 2 {
			t.Errorf("%d of 2 have seen it, %v", seen.Load(), err)
		}
	})
	bubble(t, "trap_T45_live_copies_beside_a_replay_take_effect_once", func(t *testing.T) {
		w := newWorld(t, sourceLines(0, 40))
		r := w.begin()
		done := make(chan error)
		go func() {
			_, _, err := w.run(t.Context(), r, 20)
			done <- err
		}()
		w.runLive(sourceLines(0, 40))
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.wantEffects(0, 40)
	})
	bubble(t, "G1_what_cannot_be_applied_is_parked_and_the_replay_goes_on", func(t *testing.T) {
		w := newWorld(t, sourceLines(0, 100))
		w.beforeEffect = func(m *semel.Message) error {
			if m.Identity.ID == "m50" {
				return semel.Permanent(errors.New("no such account"))
			}
			return nil
		}
		r := w.begin()
		if _, state, err := w.run(t.Context(), r, 0); err != nil || state != admin.ReplayDone {
			t.Fatalf("%s, %v", state, err)
		}
		if kept, err := w.store.Replay(t.Context(), r.Number); err != nil || kept.Progress.Counts.Parked != 1 || kept.Progress.Counts.Applied != 99 {
			t.Errorf("%+v, %v", kept.Progress.Counts, err)
		}
		rows, err := w.store.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if got, is := rows[0].Message.Replay(); !is || got.ID != r.Number {
			t.Errorf("the row has no replay: %+v", got)
		}
	})
}

func TestAKilledReplayCanBeContinued(t *testing.T) {
	points := append(faults.Points(), faults.ReplayPoints()...)
	for _, point := range points {
		for _, times := range []int64{1, 3} {
			bubble(t, fmt.Sprintf("G1_law_14_killed_at_%s_%d", point, times), func(t *testing.T) { testKill(t, point, times) })
		}
	}
}

// testKill kills the process of a replay at the given crash point, and resumes the replay in
// another process.
func testKill(t *testing.T, point faults.Point, times int64) {
	w := newWorld(t, sourceLines(0, 60))
	w.runLive(sourceLines(0, 10))
	ctx, kill := context.WithCancel(t.Context())
	var left atomic.Int64
	left.Store(times)
	plan := faults.Plan{At: func(p faults.Point, _ int) {
		if p == point && left.Add(-1) == 0 {
			w.storeLost.Store(true)
			kill()
		}
	}}
	w.beforeEffect = func(m *semel.Message) error { // the message is unfinished when the progress is recorded, but later messages have ended
		if m.Identity.ID == "m12" {
			wait(t, Lease/2)
		}
		return nil
	}
	r := w.begin()
	r.Plan = plan
	_, state, err := w.run(ctx, r, 4, plan)
	died := w.storeLost.Load()
	end := point == faults.BeforeReplayEnd || point == faults.AfterReplayEnd
	if !died && point != faults.CommitReplyLost && !(end && times > 1) {
		t.Error("the replay was not killed")
	}
	if died && err == nil && point != faults.AfterReplayEnd {
		t.Errorf("the killed replay ended as %s", state)
	}
	w.storeLost.Store(false)
	if died && point != faults.AfterReplayEnd {
		if _, err := w.store.TakeReplay(t.Context(), r.Number, 1, Lease, start); !errors.Is(err, admin.ErrReplayHeld) {
			t.Errorf("the replay was taken over during its lease: %v", err)
		}
		wait(t, Lease+time.Second)
		if _, state, err := w.run(t.Context(), w.takeOver(r.Number), 0); err != nil || state != admin.ReplayDone {
			t.Fatalf("%s, %v", state, err)
		}
	}
	w.wantEffects(0, 60)
	kept, err := w.store.Replay(t.Context(), r.Number)
	if c := kept.Progress.Counts; err != nil || kept.State != admin.ReplayDone || c.Read != 60 || c.Applied+c.Skipped != 60 || c.Skipped < 10 {
		t.Errorf("the recorded replay is %+v, %v", kept, err)
	}
}

// wait advances virtual time by d.
func wait(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

func TestAReplayIsStoppedFromElsewhere(t *testing.T) {
	bubble(t, "G1_who_runs_it_hears_of_its_stop_and_it_may_go_on", func(t *testing.T) {
		w := newWorld(t, sourceLines(0, 60))
		r := w.begin()
		stop := time.AfterFunc(2*time.Second, func() {
			if _, err := w.store.StopReplay(t.Context(), r.Number, store.Act{Verb: "replay stop", Who: "cy", Why: "slow"}); err != nil {
				t.Error(err)
			}
		})
		defer stop.Stop()
		_, state, err := w.run(t.Context(), r, 4)
		if !errors.Is(err, ErrStopped) || state != admin.ReplayStopped {
			t.Errorf("%s, %v", state, err)
		}
		kept, err := w.store.Replay(t.Context(), r.Number)
		if err != nil || kept.State != admin.ReplayStopped || kept.Progress.Counts.Read == 0 || kept.Progress.Counts.Read == 60 {
			t.Errorf("%+v, %v", kept, err)
		}
		if _, state, err := w.run(t.Context(), w.takeOver(r.Number), 0); err != nil || state != admin.ReplayDone {
			t.Errorf("%s, %v", state, err)
		}
		w.wantEffects(0, 60)
		if kept, err = w.store.Replay(t.Context(), r.Number); err != nil || kept.Progress.Counts.Applied != 60 {
			t.Errorf("a replay that was stopped has counts %+v, %v", kept.Progress.Counts, err)
		}
	})
	bubble(t, "law_5_who_has_lost_a_replay_ends_it_no_more", func(t *testing.T) {
		w := newWorld(t, sourceLines(0, 60))
		r := w.begin()
		frozen := make(chan struct{})
		r.Plan = faults.Plan{At: func(p faults.Point, _ int) {
			if p == faults.BeforeProgress {
				<-frozen
			}
		}}
		done := make(chan error)
		go func() {
			_, _, err := w.run(t.Context(), r, 2)
			done <- err
		}()
		wait(t, Lease+time.Second)
		other := w.takeOver(r.Number)
		close(frozen)
		if err := <-done; !errors.Is(err, store.ErrClaimLost) {
			t.Errorf("the replay that lost its lease returns %v", err)
		}
		if _, state, err := w.run(t.Context(), other, 0); err != nil || state != admin.ReplayDone {
			t.Errorf("%s, %v", state, err)
		}
		w.wantEffects(0, 60)
	})
}

// failingSource is a source that delivers one message and then fails.
type failingSource struct {
	source.Source
	given bool
	err   error
}

func (s *failingSource) Settle(context.Context, []source.Settlement) ([]int, error) { return nil, nil }

func (s *failingSource) Fetch(context.Context, source.Bound) ([]source.Delivery, error) {
	if s.given {
		return nil, s.err
	}
	s.given = true
	return []source.Delivery{{Message: &semel.Message{Origin: semel.Origin{Offset: 0}}, Lane: source.Lane{ID: "in"}}}, nil
}

func TestAReplayOfAChangedSourceIsNotDone(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		done bool
	}{
		"the_end":                       {source.ErrEnd, true},
		"G1_another_file":               {ErrOther, false},
		"G1_offsets_that_were_removed":  {kafka.ErrRange, false},
		"G1_a_source_that_was_closed":   {semel.ErrClosed, false},
		"law_13_a_broker_that_is_down":  {errDead, false},
		"law_13_nothing_for_the_moment": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSource(&failingSource{err: c.err}, Options{Progress: admin.ReplayProgress{Lanes: []admin.ReplayLane{{Lane: "in", To: 9, After: -1}}}})
			all, err := s.Fetch(t.Context(), source.Bound{Messages: 5})
			if err != nil || len(all) != 1 {
				t.Fatalf("%d deliveries, %v", len(all), err)
			}
			_, err = s.Fetch(t.Context(), source.Bound{Messages: 5})
			if _, e := s.Settle(t.Context(), []source.Settlement{{Delivery: &all[0], Kind: semel.Ack, Ending: source.EndApplied}}); e != nil {
				t.Fatal(e)
			}
			if s.Done() != c.done {
				t.Errorf("done: %v after %v", s.Done(), c.err)
			}
			if ended := errors.Is(err, source.ErrEnd); ended && !c.done && !errors.Is(s.Fault(), c.err) {
				t.Errorf("the source ended and its fault is %v, want %v", s.Fault(), c.err)
			}
		})
	}
}

func TestAReplayOfATimeRange(t *testing.T) {
	t.Run("G1_since_is_included_and_until_is_not", func(t *testing.T) {
		since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		until := since.Add(time.Hour)
		for at, want := range map[time.Time]outcome{since.Add(-1): outside, since: open, until.Add(-1): open, until: outside, {}: timeless} {
			s := NewSource(&failingSource{}, Options{Progress: admin.ReplayProgress{Since: since, Until: until}, SentAt: func(*source.Delivery) time.Time { return at }})
			if got := s.refusedOutcome(&source.Delivery{}); got != want {
				t.Errorf("a message of %v ends as %d, want %d", at, got, want)
			}
		}
	})
}

// silentStore is a store that stops recording progress after some calls.
type silentStore struct {
	admin.Replays
	calls int
}

func (s *silentStore) SaveReplay(context.Context, int64, store.Token, time.Duration, admin.ReplayProgress) (admin.ReplayState, error) {
	s.calls++
	return "", errDead
}

func TestAReplayEndsBeforeItsLeaseExpires(t *testing.T) {
	bubble(t, "law_5_when_the_store_has_not_answered_for_a_lease", func(t *testing.T) {
		w := newWorld(t, sourceLines(0, 60))
		r := w.begin()
		r.Store = &silentStore{Replays: w.store}
		began := time.Now()
		_, state, err := w.run(t.Context(), r, 1)
		if state == admin.ReplayDone || !errors.Is(err, errDead) {
			t.Errorf("%s, %v", state, err)
		}
		if ran := time.Since(began); ran < Lease || ran > Lease+Lease/2 {
			t.Errorf("the replay ran for %v, want a little over %v", ran, Lease)
		}
	})
}

func TestThePredictionForSeveralContentsOfAnIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		accept bool
		want   []outcome
	}{
		"A5_each_other_content_is_a_conflict_once":       {false, []outcome{applied, conflict, conflict, skipped, skipped, skipped}},
		"A5_each_time_where_it_leaves_no_row_of_its_own": {true, []outcome{applied, conflict, conflict, skipped, conflict, conflict}},
	} {
		t.Run(name, func(t *testing.T) {
			told := copies{seen: map[[16]byte]semel.Fingerprint{}, conflicts: map[[16]byte]bool{}, accept: c.accept}
			for i, content := range []byte{'a', 'b', 'c', 'a', 'b', 'c'} {
				f := admin.Prediction{Key: semel.Key{ID: "m"}, Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{content}}, End: source.EndApplied}
				if got := told.outcome(&f); got != c.want[i] {
					t.Errorf("message %d with content %c ends as %d, want %d", i, content, got, c.want[i])
				}
			}
		})
	}
}
