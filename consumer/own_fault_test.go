package consumer_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
)

func TestAMessageThatLooksLikeAnOutage(t *testing.T) {
	bubble(t, "trap_T83_it_is_named_and_parked_with_its_error_and_its_neighbours_go_on", func(t *testing.T) {
		store, seen := &downStore{watch(memstore.New())}, &witness{}
		c := config(newListSource(numbered("m", 20)...))
		c.Retry.MaxAttempts, c.Observers = 3, []semel.Observer{seen}
		runsOf := 0
		counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m11" {
				runsOf++
				return &downError{}
			}
			return add(ctx, tx, m)
		}, c)
		r := row(t, store.Store, "m11")
		if counts.Applied != 19 || counts.Parked != 1 || r.Reason != semel.ReasonExhausted || r.Attempts != 3 {
			t.Errorf("%+v, %+v", counts, r)
		}
		if !strings.Contains(r.LastError, "while other transactions commit: down") {
			t.Errorf("the row says %q", r.LastError)
		}
		named := seen.eventsOf(eventkind.Retry)
		if len(named) != 2 || named[0].Key.ID != "m11" {
			t.Errorf("the reports were %+v", named)
		}
		// The handler runs once in its batch, once alone without counting an attempt, and then for three
		// attempts.
		if runsOf != 5 {
			t.Errorf("its handler ran %d times", runsOf)
		}
	})
	bubble(t, "C17_Process_hands_it_back_as_a_failed_attempt", func(t *testing.T) {
		store := &downStore{watch(memstore.New())}
		c := config(nil)
		c.Retry.MaxAttempts = 2
		consumer := mustNew(t, store, func(context.Context, *memstore.Tx, *semel.Message) error { return &downError{} }, c)
		for i, want := range []semel.SettleKind{semel.Nack, semel.Ack} {
			m := message("1", `{}`)
			m.Attempt = i + 1
			d, err := consumer.Process(t.Context(), m)
			if err != nil || d.Kind != want {
				t.Errorf("delivery %d: %+v, %v", i+1, d, err)
			}
		}
		if counts := consumer.Counts(); counts.Parked != 1 {
			t.Errorf("%+v", counts)
		}
		if err := consumer.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAHandlerThatSticksWhileTheStoreIsAsked(t *testing.T) {
	bubble(t, "trap_T85_the_other_workers_go_on", func(t *testing.T) {
		var down atomic.Bool
		var calls atomic.Int64
		down.Store(true)
		store := newFailingStore("begin", &down, &calls)
		source := newListSource(append(numbered("a", 100), numbered("b", 100)...)...)
		source.endless = true
		c := config(source)
		c.Workers, c.Batch.MaxSize = 2, 10
		release, stuck := make(chan struct{}), atomic.Bool{}
		consumer := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if stuck.CompareAndSwap(false, true) {
				<-release
			}
			return add(ctx, tx, m)
		}, c)
		run := start(t, consumer)
		pass(time.Minute)
		down.Store(false)
		pass(time.Hour)
		synctest.Wait()
		if counts := consumer.Counts(); counts.Applied != 100 {
			t.Errorf("an hour later %+v", counts)
		}
		if ready, why := consumer.Ready(); ready || !strings.HasPrefix(why, "handler:") {
			t.Errorf("ready %t: %s", ready, why)
		}
		close(release)
		pass(time.Minute)
		if counts := consumer.Counts(); counts.Applied != 200 {
			t.Errorf("at the end %+v", counts)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}
