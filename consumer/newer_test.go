package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// ofNewer writes a marker with an outcome that only a newer release knows. The function ends changes the outcome of the
// marker to discarded, as a newer release may do.
func ofNewer(t *testing.T, st *memstore.Store, id string, o store.Outcome) (ends func()) {
	t.Helper()
	scope, err := st.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	write := func(e store.Ending) {
		t.Helper()
		b, _, err := st.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte(id), As: o}})
		if err != nil {
			t.Fatal(err)
		}
		if r := b.Commit(t.Context(), e); r.Outcome != store.Committed {
			t.Fatal(r)
		}
	}
	write(store.Ending{})
	return func() {
		write(store.Ending{Rows: []store.Row{{State: store.StateDiscarded, Message: message(id, `{}`)}}})
	}
}

// inLane returns a message of a lane.
func inLane(lane, id string) *semel.Message {
	m := message(id, `{}`)
	m.Topic = lane
	return m
}

func TestMessagesMarkedByANewerRelease(t *testing.T) {
	bubble(t, "law_4_it_is_held_with_its_lane_until_this_release_knows_it_and_other_lanes_go_on", func(t *testing.T) {
		for _, o := range []store.Outcome{6, 9} { // an outcome of the next release, and of a later release
			heldWithItsLane(t, o)
		}
	})
	bubble(t, "case_6_without_order_the_rest_of_its_lane_goes_on_and_a_stop_does_not_wait_for_it", func(t *testing.T) {
		st := memstore.New()
		ofNewer(t, st, "1", 9)
		src := newListSource(message("1", `{}`), message("2", `{}`), message("1", `{}`))
		src.endless = true
		c := config(src)
		c.Lanes = consumer.LanesNone
		consumer := mustNew(t, st, add, c)
		run := start(t, consumer)
		pass(time.Minute)
		synctest.Wait()
		if effect(t, st, "1") != "" || effect(t, st, "2") != "1" || len(src.settled) != 1 || consumer.Counts().InFlight != 2 {
			t.Errorf("%+v, settled %v", consumer.Counts(), src.settled)
		}
		began := time.Now()
		run.stop()
		if err := run.wait(); err != nil || time.Since(began) > time.Second {
			t.Errorf("the stop took %v: %v", time.Since(began), err)
		}
	})
	bubble(t, "law_11_a_consumer_that_fetches_no_more_because_of_them_is_not_ready", func(t *testing.T) {
		st := memstore.New()
		first, second := ofNewer(t, st, "1", 9), ofNewer(t, st, "2", 9)
		src := newListSource(message("1", `{}`), message("2", `{}`), message("3", `{}`))
		src.endless = true
		c := config(src)
		c.Lanes, c.MaxUnacked.Messages = consumer.LanesNone, 2
		consumer := mustNew(t, st, add, c)
		run := start(t, consumer)
		began := time.Now()
		for range 60 { // the consumer asks the store several times during this minute
			pass(time.Second)
			if ready, _ := consumer.Ready(); ready && time.Since(began) > 15*time.Second {
				t.Fatal("it is ready")
			}
		}
		if ready, why := consumer.Ready(); ready || !strings.Contains(why, "fetch: 2 messages that a newer release marked") || effect(t, st, "3") != "" {
			t.Errorf("ready %t, %q", ready, why)
		}
		first()
		pass(30 * time.Second)
		if ready, why := consumer.Ready(); !ready || effect(t, st, "3") != "1" {
			t.Errorf("after memory was freed: ready %t, %q", ready, why)
		}
		second()
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "law_11_a_run_that_may_end_ends_with_its_lane_left_and_nothing_of_it_settled", func(t *testing.T) {
		for _, exit := range []time.Duration{2 * time.Second, 0} { // the run ends by IdleExit, or because the source ends
			endsBesideIt(t, exit)
		}
	})
	bubble(t, "case_12_Process_hands_it_back_with_a_reason_of_its_own", func(t *testing.T) {
		st := memstore.New()
		ends := ofNewer(t, st, "1", 9)
		consumer := mustNew(t, st, add, config(nil))
		all, err := consumer.ProcessAll(t.Context(), []*semel.Message{message("1", `{}`), message("2", `{}`), message("1", `{}`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []int{0, 2} {
			if d := all[d]; d.Kind != semel.Nack || d.Reason != reasonname.Newer || d.After <= 0 || d.Charged || d.Ending != source.EndUnknown {
				t.Errorf("%+v", d)
			}
		}
		if all[1].Ending != source.EndApplied || effect(t, st, "1") != "" {
			t.Errorf("%+v, effect %q", all[1], effect(t, st, "1"))
		}
		ends()
		if d, err := consumer.Process(t.Context(), message("1", `{}`)); err != nil || d.Ending != source.EndDuplicate {
			t.Errorf("when the outcome is known: %+v, %v", d, err)
		}
		closed(t, consumer)
	})
	bubble(t, "case_12_TryMark_says_that_it_must_be_neither_applied_nor_settled", func(t *testing.T) {
		st := memstore.New()
		ofNewer(t, st, "1", 9)
		b, _, err := st.Begin(context.Background(), store.TxOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Rollback(context.Background())
		v, err := mustNew(t, st, add, config(nil)).TryMark(t.Context(), b.Tx(store.All), message("1", `{}`))
		if v != (store.Verdict{Kind: store.Newer, Was: 9}) || !errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), "newer release") {
			t.Errorf("%s, %v", v, err)
		}
	})
}

func endsBesideIt(t *testing.T, exit time.Duration) {
	store := memstore.New()
	ofNewer(t, store, "2", 9)
	source := newListSource(inLane("a", "1"), inLane("a", "2"), inLane("a", "3"), inLane("b", "4"))
	source.endless = exit > 0
	c := config(source)
	c.IdleExit = exit
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	consumer := mustNew(t, store, add, c)
	err := consumer.Run(ctx)
	if ctx.Err() != nil || !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), `message "2"`) || !strings.Contains(err.Error(), "outcome 9") {
		t.Errorf("IdleExit %v: %v (%v)", exit, err, ctx.Err())
	}
	if left := consumer.Unfinished(); len(left) != 1 || left[0].Lane != "a" || left[0].Messages != 2 || !left[0].Fault {
		t.Errorf("IdleExit %v: left %+v", exit, left)
	}
	for i, want := range []int{1, 0, 0, 1} {
		if source.isSettled(i) != want {
			t.Errorf("IdleExit %v: message %d is settled %d times", exit, i+1, source.isSettled(i))
		}
	}
	if n := consumer.Counts(); n.Applied != 2 || n.InFlight != 2 {
		t.Errorf("IdleExit %v: %+v", exit, n)
	}
}

func heldWithItsLane(t *testing.T, o store.Outcome) {
	st, seen := memstore.New(), &witness{}
	ends := ofNewer(t, st, "2", o)
	source := newListSource(inLane("a", "1"), inLane("a", "2"), inLane("a", "3"), inLane("b", "4"))
	source.endless = true
	c := config(source)
	c.Observers = []semel.Observer{seen}
	consumer := mustNew(t, st, add, c)
	run := start(t, consumer)
	pass(5 * time.Minute)
	synctest.Wait()
	for i, want := range []string{"1", "", "", "1"} {
		if got := effect(t, st, fmt.Sprint(i+1)); got != want || source.isSettled(i) != len(want) {
			t.Errorf("message %d has effect %q and is settled %d times while the marker is a newer release's", i+1, got, source.isSettled(i))
		}
	}
	if ready, why := consumer.Ready(); !ready || !strings.Contains(why, `lane a: message "2"`) || !strings.Contains(why, "newer release") {
		t.Errorf("ready %t, %q", ready, why)
	}
	told := seen.eventsOf(eventkind.Newer)
	if len(told) < 3 || len(told) > 6 || told[0].Wait < time.Second || told[0].Key.ID != "2" || told[0].Lane != "a" || told[0].Err == nil {
		t.Errorf("told: %+v", told)
	}
	ends()
	pass(time.Minute)
	if ready, why := consumer.Ready(); !ready || why != "" {
		t.Errorf("when the outcome is known: ready %t, %q", ready, why)
	}
	if effect(t, st, "2") != "" || effect(t, st, "3") != "1" || source.isSettled(1) != 1 || consumer.Counts().Duplicates != 1 {
		t.Errorf("when the outcome is known: effects %q %q, %+v", effect(t, st, "2"), effect(t, st, "3"), consumer.Counts())
	}
	run.stop()
	if err := run.wait(); err != nil {
		t.Error(err)
	}
}
