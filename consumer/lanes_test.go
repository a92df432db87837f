package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

func TestLanesThatAreTakenAway(t *testing.T) {
	bubble(t, "C9_a_revoked_lane_is_released_when_its_last_settlement_is_in_and_other_lanes_go_on", func(t *testing.T) {
		store, src := memstore.New(), newListSource(append(numbered("a", 10), numbered("b", 10)...)...)
		src.endless = true
		c := config(src)
		c.Batch.MaxTime = time.Hour
		consumer := mustNew(t, store, slow(time.Second), c)
		run := start(t, consumer)
		pass(2500 * time.Millisecond) // at this time the third handler of both lanes runs
		synctest.Wait()
		src.observer.Revoking(t.Context(), source.Lane{ID: "a", Epoch: 1})
		synctest.Wait()
		settled := 0
		for i := range 10 {
			if done := effect(t, store, fmt.Sprint("a", i)) == "1"; done != (src.isSettled(i) == 1) {
				t.Errorf("a%d: effect %v, settled %d times", i, done, src.isSettled(i))
			}
			settled += src.isSettled(i)
		}
		if settled != 3 {
			t.Errorf("%d messages of the revoked lane are settled, want the 3 whose handlers had begun", settled)
		}
		pass(time.Minute)
		if effect(t, store, "b9") != "1" || effect(t, store, "a3") != "" {
			t.Errorf("b9 %q, a3 %q", effect(t, store, "b9"), effect(t, store, "a3"))
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "C9_a_revocation_waits_no_longer_than_its_context", func(t *testing.T) {
		src := newListSource(numbered("a", 3)...)
		src.endless = true
		run := start(t, mustNew(t, memstore.New(), slow(10*time.Second), config(src)))
		pass(time.Second)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		src.observer.Revoking(ctx, source.Lane{ID: "a", Epoch: 1})
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "C9_nothing_of_a_lost_lane_is_settled_and_its_redelivery_is_a_duplicate", func(t *testing.T) {
		store, src := memstore.New(), newListSource(numbered("a", 3)...)
		src.endless = true
		consumer := mustNew(t, store, slow(time.Second), config(src))
		run := start(t, consumer)
		pass(500 * time.Millisecond)
		synctest.Wait()
		src.observer.Lost(source.Lane{ID: "a", Epoch: 1})
		pass(time.Minute)
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
		if len(src.settled) != 0 {
			t.Errorf("settled %v", src.settled)
		}
		counts := runs(t, store, add, config(newListSource(numbered("a", 3)...)))
		if counts.Applied+counts.Duplicates != 3 || effect(t, store, "a0") != "1" || effect(t, store, "a2") != "1" {
			t.Errorf("%+v", counts)
		}
	})
}

func TestObservers(t *testing.T) {
	bubble(t, "each_thing_that_happens_is_told_once_to_every_observer", func(t *testing.T) {
		one, two := &witness{}, &witness{}
		messages := []*semel.Message{message("park", `{}`), message("park", `{}`), message("discard", `{}`), message("retry", `{}`), message("stuck", `{}`)}
		c := config(newListSource(messages...))
		c.Observers, c.Timeout, c.Retry.MaxAttempts = []semel.Observer{one, two}, time.Second, 2
		runs(t, memstore.New(), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			switch m.Identity.ID {
			case "park":
				return semel.Park("look")
			case "discard":
				return semel.Discard("not ours")
			case "stuck":
				if m.Attempt == 1 {
					pass(10 * time.Second)
				}
			case "retry":
				if m.Attempt == 1 {
					return errTest
				}
			}
			return nil
		}, c)
		for _, w := range []*witness{one, two} {
			for kind, n := range map[semel.EventKind]int{semel.EventParked: 1, eventkind.Duplicate: 1, semel.EventDiscarded: 1, eventkind.Retry: 2, eventkind.Stuck: 1, semel.EventReady: 1, semel.EventConflict: 0} {
				if got := w.eventsOf(kind); len(got) != n {
					t.Errorf("there were %[2]d events %[1]q, want %[3]d: %+[4]v", kind, len(got), n, got)
				}
			}
			if e := w.eventsOf(eventkind.Stuck)[0]; e.Key.ID != "stuck" || e.Messages != 1 {
				t.Errorf("the handler that does not return belongs to %+v", e)
			}
			applied := 0
			for _, e := range w.eventsOf(eventkind.Committed) {
				applied += e.Messages
			}
			if e := w.eventsOf(semel.EventParked)[0]; applied < 4 || e.Consumer != "billing" || e.Lane != "a" || e.Key.ID != "park" || e.Reason != "look" {
				t.Errorf("%d committed, %+v", applied, e)
			}
		}
	})
}
