package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// failing returns a handler that adds 1 in each run, and fails in the first runs for each message, as many as the
// parameter times says. The writes of a failed run are rolled back.
func failing(times int, with func() error) func(context.Context, *memstore.Tx, *semel.Message) error {
	failed := map[string]int{}
	return func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		if err := add(ctx, tx, m); err != nil {
			return err
		}
		if failed[m.Identity.ID]++; failed[m.Identity.ID] <= times {
			return with()
		}
		return nil
	}
}

// plain returns a store without the optional features of memstore.
func plain(s *memstore.Store) store.TxStore[*memstore.Tx] {
	return struct{ store.TxStore[*memstore.Tx] }{s}
}

func TestAStoreWithoutAnInbox(t *testing.T) {
	t.Run("D2_what_needs_an_inbox_is_refused_without_one", func(t *testing.T) {
		for field, set := range map[string]func(*consumer.Config){
			"Retry.MaxDelay": func(c *consumer.Config) { c.Retry.MaxDelay = time.Minute },
			"Strategy":       func(c *consumer.Config) { c.Strategy = consumer.StrategyInbox },
		} {
			c := config(nil)
			set(&c)
			if _, err := consumer.New(memstore.New(), add, c); err != nil {
				t.Errorf("%s with an inbox: %v", field, err)
			}
			if running, err := consumer.New(plain(memstore.New()), add, c); running != nil || !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s without an inbox: %v", field, err)
			}
		}
	})
}

func TestLeasesOutOfBounds(t *testing.T) {
	for field, values := range map[string][]consumer.InboxPolicy{
		"Inbox.Lease":      {{Lease: -1}, {Lease: 1}, {Lease: 30}, {Lease: time.Second - 1}, {Lease: time.Hour + 1}, {Lease: 1 << 62}},
		"Inbox.Poll":       {{Poll: -1}, {Poll: 1}, {Poll: 1 << 62}},
		"Inbox.MaxCrashes": {{MaxCrashes: -1}, {MaxCrashes: 1 << 40}},
	} {
		t.Run("trap_T5_they_are_refused_by_name/"+field, func(t *testing.T) {
			for _, v := range values {
				c := config(nil)
				c.Strategy, c.Inbox = consumer.StrategyInbox, v
				if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), field) {
					t.Errorf("%+v: %v", v, err)
				}
			}
		})
	}
}

func TestWaitsBeyondHold(t *testing.T) {
	bubble(t, "case_6_a_wait_longer_than_hold_is_a_row_and_the_broker_is_settled", func(t *testing.T) {
		st, source := memstore.New(), newListSource(numbered("m", 3)...)
		source.endless = true
		c := config(source)
		c.Workers, c.IdleExit = 1, 10*time.Minute
		handle := failing(1, func() error { return semel.RetryAfter(errTest, time.Minute) })
		began := time.Now()
		counts := runs(t, st, handle, c)
		if counts.Waiting != 3 || counts.Applied != 0 || counts.Inbox.Claimed != 3 || counts.Inbox.Applied != 3 || len(source.settled) != 3 {
			t.Errorf("%+v, %d settled", counts, len(source.settled))
		}
		for _, r := range rows(t, st) {
			if r.State != store.StateCompleted || r.Attempts != 2 || effect(t, st, r.Key.ID) != "1" {
				t.Errorf("%+v, effect %q", r, effect(t, st, r.Key.ID))
			}
		}
		if took := time.Since(began); took < time.Minute {
			t.Errorf("the effects happened after %v", took)
		}
	})
	bubble(t, "C5_trap_T51_attempts_are_counted_over_waits_in_memory_and_in_the_inbox", func(t *testing.T) {
		st, source := memstore.New(), newListSource(numbered("m", 1)...)
		source.endless = true
		c := config(source)
		c.IdleExit, c.Retry = time.Hour, consumer.RetryPolicy{MaxAttempts: 6, InitialDelay: 5 * time.Second, MaxDelay: 10 * time.Minute}
		runs := runs(t, st, failing(99, func() error { return errTest }), c)
		r := row(t, st, "m0")
		if r.State != store.StateParked || r.Reason != semel.ReasonExhausted || r.Attempts != 6 || effect(t, st, "m0") != "" {
			t.Errorf("%+v after %+v", r, runs)
		}
	})
}

func TestEffectWithItsRow(t *testing.T) {
	bubble(t, "D2_after_effect_row_effect_and_marker_are_one_commit_and_copies_are_counted_on_the_row", func(t *testing.T) {
		st, source := memstore.New(), newListSource(append(numbered("m", 20), numbered("m", 20)...)...)
		c := config(source)
		c.Strategy = consumer.StrategyInbox
		tries := map[string]int{}
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if tries[m.Identity.ID]++; m.Identity.ID == "m7" && tries["m7"] < 3 {
				return errTest
			}
			return add(ctx, tx, m)
		}, c)
		if counts.Applied != 20 || counts.Duplicates != 20 || counts.Received+counts.Waiting+counts.Inbox.Claimed != 0 {
			t.Errorf("%+v", counts)
		}
		for _, r := range rows(t, st) {
			want := 1
			if r.Key.ID == "m7" {
				want = 3
			}
			if r.State != store.StateCompleted || r.Repeated != 1 || r.Attempts != want || effect(t, st, r.Key.ID) != "1" {
				t.Errorf("%+v, effect %q", r, effect(t, st, r.Key.ID))
			}
		}
		c.Source = newListSource(numbered("m", 20)...)
		if counts := runs(t, st, add, c); counts.Duplicates != 20 || row(t, st, "m3").Repeated != 2 {
			t.Errorf("delivered again: %+v, %+v", counts, row(t, st, "m3"))
		}
	})
}

func TestReceipt(t *testing.T) {
	bubble(t, "D2_after_receipt_the_broker_is_settled_before_the_handler_runs", func(t *testing.T) {
		st, source := memstore.New(), newListSource(numbered("m", 20)...)
		c := config(source)
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		counts := runs(t, st, add, c)
		if counts.Received != 20 || counts.Inbox.Applied != 20 || len(source.settled) != 20 {
			t.Errorf("%+v, %d settled", counts, len(source.settled))
		}
		for _, r := range rows(t, st) {
			if r.State != store.StateCompleted || effect(t, st, r.Key.ID) != "1" {
				t.Errorf("%+v, effect %q", r, effect(t, st, r.Key.ID))
			}
		}
		again := newListSource(numbered("m", 20)...)
		c.Source = again
		if counts := runs(t, st, add, c); counts.Duplicates != 20 || counts.Inbox.Claimed != 0 {
			t.Errorf("delivered again: %+v", counts)
		}
	})
}

func TestRowsThatAnOperatorRetries(t *testing.T) {
	for name, set := range map[string]func(*consumer.Config){
		"a_consumer_with_markers_works_on_it": func(*consumer.Config) {},
		"a_natural_consumer_does_too": func(c *consumer.Config) {
			c.Strategy, c.NaturalReason = consumer.StrategyNatural, "tests"
		},
		"a_business_key_that_finds_it_done_completes_it": func(c *consumer.Config) { c.Strategy = consumer.StrategyBusinessKey },
	} {
		bubble(t, name, func(t *testing.T) {
			st := memstore.New()
			broken := true
			handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				switch {
				case broken:
					return semel.Permanent(errTest)
				case strings.HasPrefix(name, "a_business_key"):
					return semel.Duplicate(errTest)
				}
				return add(ctx, tx, m)
			}
			source := newListSource(numbered("m", 3)...)
			source.endless = true
			c := config(source)
			set(&c)
			running := mustNew(t, st, handle, c)
			run := start(t, running)
			pass(10 * time.Second)
			broken = false
			r := row(t, st, "m1")
			if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ann"}, r.Seen())...); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Second)
			want := "1"
			if strings.HasPrefix(name, "a_business_key") {
				want = ""
			}
			if r := row(t, st, "m1"); r.State != store.StateCompleted || r.Attempts != 2 || effect(t, st, "m1") != want || row(t, st, "m0").State != store.StateParked {
				t.Errorf("%+v, effect %q", r, effect(t, st, "m1"))
			}
			run.stop()
			if err := run.wait(); err != nil {
				t.Error(err)
			}
			if n := running.Counts(); n.Parked != 3 || n.Inbox.Claimed != 1 || n.Inbox.Applied+n.Inbox.Duplicates != 1 {
				t.Errorf("%+v", n)
			}
		})
	}
}

func TestWorkOnTheInboxAlone(t *testing.T) {
	bubble(t, "D2_a_consumer_without_a_source_works_on_its_inbox_until_it_is_stopped", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 10)
		c := config(nil)
		c.Strategy = consumer.StrategyInbox
		running := mustNew(t, st, add, c)
		run := start(t, running)
		pass(time.Minute)
		if ready, why := running.Ready(); !ready || running.Counts().Inbox.Applied != 10 {
			t.Errorf("ready %t (%s), %+v", ready, why, running.Counts())
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "K11_only_the_rows_that_are_named_are_worked_on_and_the_run_ends_then", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 10)
		began := time.Now()
		running := mustNew(t, st, add, config(nil))
		if err := running.Work(t.Context(), 3, 7); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for _, r := range rows(t, st) {
			if done := r.Number == 3 || r.Number == 7; done != (r.State == store.StateCompleted) {
				t.Errorf("%+v", r)
			}
		}
		if left := running.Unfinished(); len(left) != 1 || left[0].Messages != 8 {
			t.Errorf("left %+v", left)
		}
	})
	t.Run("a_store_without_an_inbox_needs_a_source", func(t *testing.T) {
		if err := mustNew(t, plain(memstore.New()), add, unparked(nil)).Work(t.Context()); !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "no inbox") {
			t.Error(err)
		}
	})
}

func TestAcceptance(t *testing.T) {
	bubble(t, "F3_what_a_transaction_of_the_users_accepts_is_worked_on_once_it_commits", func(t *testing.T) {
		st := memstore.New()
		c := config(nil)
		c.Strategy = consumer.StrategyInbox
		running := mustNew(t, st, add, c)
		run := start(t, running)
		accept := func(commits bool, messages ...*semel.Message) []store.Verdict {
			b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			verdicts, err := running.Accept(t.Context(), b.Tx(store.All), messages...)
			if err != nil {
				t.Fatal(err)
			}
			if !commits {
				b.Rollback(t.Context())
			} else if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
				t.Fatal(r)
			}
			return verdicts
		}
		accept(false, numbered("m", 2)...)
		pass(5 * time.Second)
		if n := running.Counts().Inbox; n.Claimed != 0 {
			t.Errorf("after a rollback: %+v", n)
		}
		if v := accept(true, numbered("m", 3)...); v[0].Kind != store.Fresh || v[2].Kind != store.Fresh {
			t.Errorf("%v", v)
		}
		pass(5 * time.Second)
		if n := running.Counts().Inbox; n.Applied != 3 || effect(t, st, "m2") != "1" {
			t.Errorf("%+v", n)
		}
		if v := accept(true, numbered("m", 1)...); !v[0].Already(store.Applied) {
			t.Errorf("a copy: %v", v)
		}
		b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := running.Accept(t.Context(), b.Tx(store.All), &semel.Message{Body: []byte("{}")}); !strings.Contains(fmt.Sprint(err), "nothing was received") {
			t.Errorf("without an identity: %v", err)
		}
		if _, err := running.Accept(t.Context(), b.Tx(store.All), nil); !strings.Contains(fmt.Sprint(err), "nothing was received") {
			t.Errorf("no message: %v", err)
		}
		natural := config(nil)
		natural.Strategy, natural.NaturalReason, natural.Identity = consumer.StrategyNatural, "a test", nil
		unmarked := mustNew(t, st, add, natural)
		_, err = unmarked.Accept(t.Context(), b.Tx(store.All), numbered("n", 1)...)
		_, marking := unmarked.TryMark(t.Context(), b.Tx(store.All), numbered("n", 1)[0])
		if !errors.Is(err, semel.ErrUnsupported) || !errors.Is(marking, semel.ErrUnsupported) {
			t.Errorf("without markers: %v, %v", err, marking)
		}
		b.Rollback(t.Context())
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}

// unwilling is a store that ends no claims while a run is being stopped, until the last seconds of the run. A
// run may reach these seconds without an earlier attempt to end the claims.
type unwilling struct {
	*memstore.Store
	times int
}

// leaves is how long a run may take to end after its drain.
const leaves = 5 * time.Second

func (s *unwilling) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	end, _ := ctx.Deadline()
	if time.Until(end) <= leaves {
		return s.Store.End(ctx, all)
	}
	if s.times--; s.times >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.End(ctx, all)
}

func TestAMessageOfTheInboxHaltsTheConsumer(t *testing.T) {
	bubble(t, "C5_its_attempt_is_written_down_and_the_next_start_tries_it_at_once", func(t *testing.T) {
		st := &unwilling{Store: memstore.New(), times: 1}
		fillInbox(t, st.Store, 3)
		c := withoutSource(config(nil))
		c.Retry, c.Workers = consumer.RetryPolicy{MaxAttempts: 1, OnExhausted: consumer.ActionHalt}, 1
		halting := mustNew(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { return errTest }, c)
		if err := halting.Run(t.Context()); !errors.Is(err, semel.ErrHalted) || !strings.Contains(err.Error(), "it waits in the inbox and is tried again at the next start") {
			t.Fatal(err)
		}
		rows, err := st.Rows(t.Context(), store.RowFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rows {
			if r.State == store.StateInProgress || r.Started != 0 {
				t.Errorf("%+v", r)
			}
			if i == 0 && (r.Attempts != 1 || r.LastError != errTest.Error() || r.State != store.StateFailedRetryable) {
				t.Errorf("%+v", r)
			}
		}
		began := time.Now()
		c = withoutSource(c)
		c.IdleExit = time.Second
		var took time.Duration
		counts := runs(t, st.Store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			took = time.Since(began)
			return add(ctx, tx, m)
		}, c)
		if counts.Inbox.Applied != 3 || took > time.Second {
			t.Errorf("%+v after %v", counts.Inbox, took)
		}
	})
}
