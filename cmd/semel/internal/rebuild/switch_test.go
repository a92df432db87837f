package rebuild_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/rebuild"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/store"
)

// pass advances virtual time by d.
func pass(d time.Duration) { <-time.After(d) }

var errDied = errors.New("it died")

func TestASwitch(t *testing.T) {
	t.Run("law_12_has_every_message_once_in_the_new_generation_wherever_it_was_killed", func(t *testing.T) {
		for _, at := range rebuild.Points() {
			t.Run(string(at), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testKill(t, at) }) })
		}
	})
	t.Run("G2_gives_up_where_the_rebuild_does_not_come_to_the_end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.log.send(10)
			pass(3 * time.Second)
			if _, err := w.store.OpenGeneration(t.Context(), "billing", store.Act{Who: "ana"}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.newSwitch().Do(t.Context()); !errors.Is(err, rebuild.ErrNotEqual) || !strings.Contains(err.Error(), "lane a is at 0 of 10") {
				t.Errorf("without a running rebuild: %v", err)
			}
			w.log.send(5)
			pass(3 * time.Second)
			w.stop()
			w.wantOnce(0, 15)
			w.wantOnce(1, 0)
		})
	})
	t.Run("law_12_gives_up_while_rows_of_the_rebuild_are_due_or_in_progress", func(t *testing.T) {
		for _, p := range []store.Pending{{Due: 1}, {InProgress: 1}} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.log.send(10)
				pass(3 * time.Second)
				w.build()
				pass(3 * time.Second)
				s := w.newSwitch()
				s.Store = &unfinishedStore{w.store, p}
				if _, err := s.Do(t.Context()); !errors.Is(err, rebuild.ErrNotEqual) || !strings.Contains(err.Error(), "1 rows of its inbox are due or in progress") {
					t.Errorf("with %+v: %v", p, err)
				}
				w.stop()
				w.wantOnce(0, 10)
			})
		}
	})
	t.Run("G2_gives_up_where_messages_of_the_new_generation_were_set_aside", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.fail = func(m *semel.Message) error {
				if m.Identity.ID == "m7" {
					return semel.Park("broken")
				}
				return nil
			}
			w.log.send(10)
			pass(3 * time.Second)
			w.build()
			pass(3 * time.Second)
			if _, err := w.newSwitch().Do(t.Context()); !errors.Is(err, rebuild.ErrParked) || !strings.Contains(err.Error(), "billing@1") {
				t.Errorf("with a parked message: %v", err)
			}
			w.log.send(1)
			pass(3 * time.Second)
			w.wantOnce(0, 11)
			anyway := w.newSwitch()
			anyway.AllowParked = true
			if from, err := anyway.Do(t.Context()); err != nil || from != 0 {
				t.Errorf("from %d: %v", from, err)
			}
			w.stop()
		})
	})
	t.Run("G2_gives_up_where_the_last_message_before_the_fence_was_set_aside", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.fail = func(m *semel.Message) error {
				if m.Identity.ID == "m10" {
					return semel.Park("broken")
				}
				return nil
			}
			w.log.send(10)
			pass(3 * time.Second)
			w.build()
			pass(3 * time.Second)
			late := w.newSwitch()
			late.At = func(p rebuild.Point) error {
				if p == rebuild.BeforeFence {
					w.log.send(1)
					pass(time.Second)
				}
				return nil
			}
			if _, err := late.Do(t.Context()); !errors.Is(err, rebuild.ErrParked) {
				t.Errorf("a message was parked after the first check: %v", err)
			}
			w.log.send(1)
			pass(3 * time.Second)
			w.stop()
			w.wantOnce(0, 12)
		})
	})
	t.Run("trap_T29_a_switch_whose_reply_was_lost_is_told_as_what_it_is", func(t *testing.T) {
		for _, c := range []struct {
			name          string
			commits, down bool
			want          error
		}{{"committed", true, false, nil}, {"rolled back", false, false, errLost}, {"the store is down", true, true, rebuild.ErrUnknown}} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.log.send(3)
				pass(3 * time.Second)
				w.build()
				pass(3 * time.Second)
				s := w.newSwitch()
				s.Store = &lossyStore{Store: w.store, commits: c.commits, stays: c.down}
				if from, err := s.Do(t.Context()); from != 0 || !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", c.name, err, c.want)
				}
				w.log.send(1)
				pass(time.Minute)
				w.stop()
				if c.commits {
					w.wantOnce(1, 4)
				} else {
					w.wantOnce(0, 4)
				}
			})
		}
	})
	t.Run("G2_is_refused_beside_another_and_of_what_is_not_built", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			pass(3 * time.Second)
			if _, err := w.newSwitch().Do(t.Context()); !errors.Is(err, semel.ErrState) {
				t.Errorf("without the generation: %v", err)
			}
			w.build()
			pass(time.Second)
			if err := w.store.FenceGeneration(t.Context(), "billing", 0, time.Minute); err != nil {
				t.Fatal(err)
			}
			if _, err := w.newSwitch().Do(t.Context()); !errors.Is(err, semel.ErrState) {
				t.Errorf("during another switch: %v", err)
			}
			w.stop()
		})
	})
}

func TestARebuild(t *testing.T) {
	t.Run("G2_has_come_to_its_end_when_it_is_switched_to_whatever_comes_then", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.log.send(10)
			pass(3 * time.Second)
			r := rebuild.Runner{Store: w.store, Token: store.NewToken(), Who: "ana", Far: w, Counts: func() semel.Counts { return semel.Counts{Deliveries: 10, Applied: 10} }, Report: func(admin.ReplayProgress) {}}
			var err error
			if r.Replay, err = rebuild.Open(t.Context(), w.store, admin.Replay{Consumer: "billing"}, r.Token, store.Act{Verb: "rebuild start", Who: "ana", Why: "x"}); err != nil {
				t.Fatal(err)
			}
			ended := make(chan generations.State)
			go func() {
				is, err := r.Run(t.Context(), func(ctx context.Context, g consumer.Generation) error { return w.run(ctx, g, w.builder) })
				if err != nil {
					t.Error(err)
				}
				ended <- is
			}()
			pass(3 * time.Second)
			if _, err := w.newSwitch().Do(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.log.send(5)
			if is := <-ended; is != generations.Active {
				t.Errorf("the state is %v", is)
			}
			kept, err := w.store.Replay(t.Context(), r.Replay.Number)
			if l := kept.Progress.Lanes; err != nil || kept.State != admin.ReplayDone || len(l) != 1 || l[0].After != 10 || l[0].To != 10 {
				t.Errorf("the recorded replay is %+v: %v", kept, err)
			}
			w.stop()
		})
	})
}

// testKill kills a switch at the given step while messages arrive, and then switches again.
func testKill(t *testing.T, at rebuild.Point) {
	w := newWorld(t)
	w.fail = func(*semel.Message) error { pass(10 * time.Millisecond); return nil }
	w.log.send(20)
	pass(3 * time.Second)
	w.build()
	w.log.send(5)
	pass(3 * time.Second)
	first := w.newSwitch()
	first.At = func(p rebuild.Point) error {
		w.log.send(20) // the consumer applied these messages long before the rebuild
		pass(50 * time.Millisecond)
		if p == at {
			return errDied
		}
		return nil
	}
	if _, err := first.Do(t.Context()); !errors.Is(err, errDied) {
		t.Errorf("the switch was not killed: %v", err)
	}
	w.log.send(5)
	pass(time.Minute) // after a minute, the fence has expired
	if at != rebuild.AfterSwitch {
		if _, err := w.newSwitch().Do(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	w.log.send(5)
	pass(10 * time.Second)
	w.stop()
	w.wantOnce(1, len(w.log.all))
	for i := range w.log.all { // the old generation has applied each message at most once, in order
		if got := string(w.store.Get("0 m" + strconv.Itoa(i))); got != "1" && got != "" {
			t.Errorf("m%d took effect %q times in the old generation", i, got)
		}
	}
}

func TestADropRemovesThePreviousGenerationOrAnAbandonedRebuild(t *testing.T) {
	t.Run("G2_and_never_the_active_one", func(t *testing.T) {
		of := func(states ...generations.State) (all []admin.StoredGeneration) {
			for i, s := range states {
				all = append(all, admin.StoredGeneration{Number: int64(i), State: s})
			}
			return all
		}
		const building, active, old, dropped = generations.Building, generations.Active, generations.Old, generations.Dropped
		for _, one := range []struct {
			all      []admin.StoredGeneration
			of, want int64
		}{
			{of(active, building), 1, 1},
			{of(active, dropped), 1, 1},
			{of(old, active), 1, 0},
			{of(dropped, active), 1, 0},
			{of(old, dropped, active), 2, 0},
			{of(old, old, active), 2, 1},
			{of(old, old, active), 1, 0},
			{of(active), 0, -1},
		} {
			got, err := rebuild.Dropped(one.all, one.of)
			if one.want < 0 != (err != nil) || err == nil && got != one.want {
				t.Errorf("%+v, rebuild of %d: %d, %v, want %d", one.all, one.of, got, err, one.want)
			}
		}
	})
}

func TestAKilledStartIsContinued(t *testing.T) {
	t.Run("G2_a_generation_of_which_no_replay_is_known", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			pass(time.Second)
			act := store.Act{Verb: "rebuild start", Who: "ana", Why: "x"}
			if _, err := w.store.OpenGeneration(context.Background(), "billing", act); err != nil {
				t.Fatal(err)
			}
			r, err := rebuild.Open(t.Context(), w.store, admin.Replay{Consumer: "billing"}, store.NewToken(), act)
			if err != nil || r.Generation != 1 || r.Number != 1 {
				t.Errorf("%+v, %v", r, err)
			}
			if _, err := rebuild.Open(t.Context(), w.store, admin.Replay{Consumer: "billing"}, store.NewToken(), act); !errors.Is(err, semel.ErrState) || !strings.Contains(err.Error(), "replay 1") {
				t.Errorf("a second: %v", err)
			}
			w.stop()
		})
	})
}
