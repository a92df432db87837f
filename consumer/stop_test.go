package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// slow is a handler that takes d for each message, even after its context was cancelled.
func slow(d time.Duration) func(context.Context, *memstore.Tx, *semel.Message) error {
	return func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		pass(d)
		return add(ctx, tx, m)
	}
}

func TestStopping(t *testing.T) {
	bubble(t, "case_10_a_stop_lets_the_running_handler_finish_commits_what_is_done_and_leaves_the_rest_unsettled", func(t *testing.T) {
		st, source := memstore.New(), newListSource(numbered("m", 10)...)
		source.endless = true
		c := config(source)
		c.Batch.MaxTime = time.Minute
		consumer := mustNew(t, st, slow(time.Second), c)
		run := start(t, consumer)
		pass(3500 * time.Millisecond) // the fourth handler runs now
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if counts := consumer.Counts(); counts.Applied != 4 || counts.InFlight != 6 || len(source.settled) != 4 {
			t.Errorf("%+v, settled %v", counts, source.settled)
		}
		for i := range 10 {
			id := fmt.Sprint("m", i)
			want, verdict := "", store.Verdict{Kind: store.Fresh}
			if i < 4 {
				want, verdict = "1", store.Verdict{Kind: store.Seen, Was: store.Applied}
			}
			if effect(t, st, id) != want || outcome(t, st, id) != verdict || source.isSettled(i) != len(want) {
				t.Errorf("%s: effect %q, verdict %s, settled %d times", id, effect(t, st, id), outcome(t, st, id), source.isSettled(i))
			}
		}
	})
	bubble(t, "trap_126_a_message_interrupted_by_a_stop_is_charged_with_no_attempt", func(t *testing.T) {
		st, interrupted, attempts := memstore.New(), 0, 0
		for range 5 {
			source := newListSource(message("1", `{}`))
			c := config(source)
			c.Retry.MaxAttempts, c.Drain = 1, time.Second
			run := start(t, mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				attempts = max(attempts, m.Attempt)
				<-ctx.Done()
				interrupted++
				return ctx.Err()
			}, c))
			pass(time.Second)
			run.stop()
			if err := run.wait(); err != nil {
				t.Fatal(err)
			}
			if len(source.settled) != 0 {
				t.Error("an interrupted message was settled")
			}
		}
		counts := runs(t, st, add, config(newListSource(message("1", `{}`))))
		if counts.Applied != 1 || counts.Parked != 0 || len(rows(t, st)) != 0 || interrupted != 5 || attempts != 1 {
			t.Errorf("%+v, %d interrupted, attempt %d", counts, interrupted, attempts)
		}
	})
	bubble(t, "trap_135_at_the_end_of_the_drain_handlers_are_cancelled_and_nothing_of_them_is_left", func(t *testing.T) {
		st, source := memstore.New(), newListSource(numbered("m", 3)...)
		source.endless = true
		c := config(source)
		c.Drain = 2 * time.Second
		run := start(t, mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if err := add(ctx, tx, m); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}, c))
		pass(time.Second)
		began := time.Now()
		run.stop()
		err := run.wait()
		if took := time.Since(began); err != nil || took != 2*time.Second || len(source.settled) != 0 || effect(t, st, "m0") != "" {
			t.Errorf("%v after %v, settled %v, effect %q", err, took, source.settled, effect(t, st, "m0"))
		}
	})
	bubble(t, "case_10_a_handler_that_ignores_everything_makes_Run_return_an_error_and_commits_nothing", func(t *testing.T) {
		st, source := memstore.New(), newListSource(message("1", `{}`))
		c := config(source)
		c.Drain = 2 * time.Second
		late := make(chan error, 1)
		run := start(t, mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			pass(time.Hour)
			err := add(ctx, tx, m)
			late <- err
			return err
		}, c))
		pass(time.Second)
		run.stop()
		err := run.wait()
		if err == nil || !strings.Contains(err.Error(), "1 handlers ignore their context") {
			t.Errorf("Run says %v", err)
		}
		if err := <-late; !errors.Is(err, memstore.ErrTxDone) {
			t.Errorf("a write after the end returned %v", err)
		}
		synctest.Wait()
		if effect(t, st, "1") != "" || outcome(t, st, "1").Kind != store.Fresh || len(source.settled) != 0 {
			t.Errorf("effect %q, settled %v", effect(t, st, "1"), source.settled)
		}
	})
}

func TestAStopDuringACommit(t *testing.T) {
	bubble(t, "trap_94_a_stop_during_a_commit_does_not_cancel_it_and_what_it_did_is_settled", func(t *testing.T) {
		for _, when := range []string{"before", "after"} {
			st, source := watch(memstore.New()), newListSource(numbered("m", 3)...)
			source.endless = true
			consumer := (*consumer.Consumer[*memstore.Tx])(nil)
			ctx, cancel := context.WithCancel(t.Context())
			st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
				if when == "before" {
					cancel()
					pass(time.Second)
					return commit(ctx)
				}
				defer pass(time.Second)
				defer cancel()
				return commit(ctx)
			}
			consumer = mustNew(t, st, add, config(source))
			if err := consumer.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if counts := consumer.Counts(); counts.Applied != 3 || len(source.settled) != 3 || effect(t, st.Store, "m2") != "1" {
				t.Errorf("%s: %+v, settled %v", when, counts, source.settled)
			}
		}
	})
	bubble(t, "case_10_a_commit_still_in_flight_at_the_end_of_the_drain_is_neither_awaited_nor_settled", func(t *testing.T) {
		st, source := watch(memstore.New()), newListSource(numbered("m", 3)...)
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			pass(25 * time.Second)
			return commit(ctx)
		}
		c := config(source)
		c.Drain = time.Second
		run := start(t, mustNew(t, st, add, c))
		pass(time.Second)
		began := time.Now()
		run.stop()
		err := run.wait()
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "a commit did not end in time") || took > 10*time.Second || len(source.settled) != 0 {
			t.Errorf("%v after %v, settled %v", err, took, source.settled)
		}
		pass(time.Minute)
		again := newListSource(numbered("m", 3)...)
		if counts := runs(t, st.Store, add, config(again)); counts.Applied+counts.Duplicates != 3 || effect(t, st.Store, "m0") != "1" {
			t.Errorf("afterwards %+v, effect %s", counts, effect(t, st.Store, "m0"))
		}
	})
}

func TestAStopOfASource(t *testing.T) {
	bubble(t, "a_source_that_ignores_its_context_is_named_in_the_error", func(t *testing.T) {
		src := watchSource(message("1", `{}`))
		src.onFetch = func(context.Context, source.Bound) error { pass(time.Hour); return nil }
		c := config(src)
		c.Drain = time.Second
		run := start(t, mustNew(t, memstore.New(), add, c))
		pass(time.Second)
		run.stop()
		if err := run.wait(); err == nil || !strings.Contains(err.Error(), "Fetch or Settle ignores") {
			t.Errorf("Run says %v", err)
		}
		pass(2 * time.Hour)
	})
	bubble(t, "trap_T40_what_was_fetched_and_not_begun_at_a_stop_is_unsettled_and_comes_again", func(t *testing.T) {
		store, messages := memstore.New(), numbered("m", 300)
		var mutex sync.Mutex
		ran := map[string]int{}
		for life := 0; len(messages) > 0; life++ {
			if life > 100 {
				t.Fatalf("%d messages never end", len(messages))
			}
			src := newListSource(messages...)
			src.endless = true
			c := config(src)
			c.Batch.MaxSize, c.Workers = 10, 2
			run := start(t, mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				mutex.Lock()
				ran[m.Identity.ID]++
				mutex.Unlock()
				return slow(time.Millisecond)(ctx, tx, m)
			}, c))
			pass(25*time.Millisecond + time.Duration(life)*100*time.Microsecond)
			run.stop()
			if err := run.wait(); err != nil {
				t.Fatal(err)
			}
			messages = src.unacked(messages)
		}
		for i := range 300 {
			if id := fmt.Sprint("m", i); effect(t, store, id) != "1" {
				t.Errorf("%s has effect %q", id, effect(t, store, id))
			}
		}
	})
}

func TestSettlementsOfABatchDuringAStop(t *testing.T) {
	bubble(t, "trap_25_what_ends_out_of_order_is_settled_one_by_one_and_never_for_its_predecessors", func(t *testing.T) {
		store, source := memstore.New(), newListSource(numbered("m", 40)...)
		source.endless = true
		c := config(source)
		c.Lanes, c.Workers, c.Batch.MaxSize, c.Drain = consumer.LanesNone, 4, 1, time.Second
		run := start(t, mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m0" {
				<-ctx.Done()
				return ctx.Err()
			}
			return add(ctx, tx, m)
		}, c))
		pass(5 * time.Second)
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if source.isSettled(0) != 0 || len(source.settled) < 20 {
			t.Errorf("m0 is settled %d times, of %d", source.isSettled(0), len(source.settled))
		}
		for i := range 40 {
			if done := effect(t, store, fmt.Sprint("m", i)) == "1"; done != (source.isSettled(i) == 1) {
				t.Errorf("m%d: effect %v, settled %d times", i, done, source.isSettled(i))
			}
		}
	})
	bubble(t, "trap_T38_a_batch_is_settled_for_the_handlers_that_ended_only", func(t *testing.T) {
		store, source := memstore.New(), newListSource(numbered("m", 10)...)
		source.endless = true
		c := config(source)
		c.Batch.MaxTime, c.Drain = time.Hour, time.Second
		run := start(t, mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m6" {
				<-ctx.Done()
				return ctx.Err()
			}
			return add(ctx, tx, m)
		}, c))
		pass(time.Second)
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		for i := 6; i < 10; i++ {
			if source.isSettled(i) != 0 {
				t.Errorf("m%d is settled", i)
			}
		}
	})
}

func TestTheEndOfAnIdleConsumer(t *testing.T) {
	bubble(t, "an_idle_consumer_ends_after_IdleExit_and_not_while_a_message_waits", func(t *testing.T) {
		source := newListSource(message("1", `{}`))
		source.endless = true
		c := config(source)
		c.IdleExit = 2 * time.Second
		began, first := time.Now(), true
		counts := runs(t, memstore.New(), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if first {
				first = false
				return semel.RetryAfter(errTest, 9*time.Second)
			}
			return add(ctx, tx, m)
		}, c)
		if took := time.Since(began); counts.Applied != 1 || took < 11*time.Second || took > 12*time.Second {
			t.Errorf("%+v after %v", counts, took)
		}
	})
}

func TestHandlersThatRunTooLong(t *testing.T) {
	bubble(t, "trap_T30_what_a_handler_writes_after_its_time_out_fails_and_is_not_there", func(t *testing.T) {
		store := memstore.New()
		var late error
		c := config(newListSource(message("1", `{}`)))
		c.Timeout, c.Retry.MaxAttempts = time.Second, 1
		counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			pass(time.Minute)
			late = tx.Set("late", []byte("x"))
			return nil
		}, c)
		if !errors.Is(late, memstore.ErrTxDone) || store.Get("late") != nil || counts.Parked != 1 {
			t.Errorf("%v, %q, %+v", late, store.Get("late"), counts)
		}
	})
	bubble(t, "a_handler_that_obeys_its_time_out_is_charged_and_tried_again", func(t *testing.T) {
		store, ran := memstore.New(), 0
		c := config(newListSource(numbered("m", 3)...))
		c.Timeout = time.Second
		counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if ran++; ran == 2 {
				<-ctx.Done()
				return ctx.Err()
			}
			return add(ctx, tx, m)
		}, c)
		if counts.Applied != 3 || counts.Retried != 1 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "a_handler_that_ends_just_when_its_time_is_up_charges_nobody_behind_it", func(t *testing.T) {
		for range 300 {
			c := config(newListSource(numbered("m", 2)...))
			c.Timeout, c.Batch.MaxTime, c.Retry.MaxAttempts = time.Second, time.Minute, 1
			counts := runs(t, memstore.New(), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				if m.Identity.ID == "m0" {
					pass(time.Second)
				}
				return nil
			}, c)
			if counts.Applied+counts.Parked != 2 || counts.Applied == 0 {
				t.Fatalf("%+v", counts)
			}
		}
	})
	bubble(t, "readiness_stays_red_until_the_last_stuck_handler_has_returned", func(t *testing.T) {
		one, two := message("1", `{}`), message("2", `{}`)
		one.Topic, two.Topic = "a", "b"
		c := config(newListSource(one, two))
		c.Timeout, c.Workers, c.Retry.MaxAttempts = time.Second, 2, 1
		consumer := mustNew(t, memstore.New(), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "1" {
				pass(10 * time.Second)
			} else {
				pass(20 * time.Second)
			}
			return nil
		}, c)
		run := start(t, consumer)
		pass(15 * time.Second)
		if ready, _ := consumer.Ready(); ready {
			t.Error("ready while a handler still ignores its time-out")
		}
		pass(10 * time.Second)
		if ready, why := consumer.Ready(); !ready {
			t.Errorf("not ready: %s", why)
		}
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}
