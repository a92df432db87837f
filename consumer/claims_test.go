package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// fillInbox stores n messages in the inbox, like a consumer that received them and then ended.
func fillInbox(t *testing.T, st *memstore.Store, n int) {
	t.Helper()
	scope, err := st.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range numbered("m", n) {
		id := fmt.Sprint("m", i)
		b, _, err := st.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte(id), As: store.Waiting}})
		if err != nil {
			t.Fatal(err)
		}
		m.Identity = semel.Key{Consumer: "billing", ID: id}
		if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateReceived, Message: m}}}); r.Outcome != store.Committed {
			t.Fatal(r)
		}
	}
}

// dies acts like a process that claims due rows and then crashes.
func dies(t *testing.T, st *memstore.Store, lease time.Duration) []store.Claimed {
	t.Helper()
	all, err := st.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1000, Lease: lease})
	if err != nil || len(all) == 0 {
		t.Fatalf("claimed %d: %v", len(all), err)
	}
	return all
}

// withoutSource returns the configuration c for a consumer that has no source and processes only its inbox.
func withoutSource(c consumer.Config) consumer.Config {
	source := newListSource()
	source.endless = true
	c.Source, c.Strategy = source, consumer.StrategyInbox
	return c
}

func TestClaimsOfTheDead(t *testing.T) {
	bubble(t, "D3_trap_T6_a_dead_process_is_followed_within_its_lease_and_a_poll", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 5)
		dies(t, st, 30*time.Second)
		began := time.Now()
		c := withoutSource(config(nil))
		c.IdleExit = time.Minute
		ended := atomic.Int64{} // when the last handler ended
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			ended.Store(int64(time.Since(began)))
			return add(ctx, tx, m)
		}, c)
		last := time.Duration(ended.Load())
		if counts.Inbox.Applied != 5 || counts.Inbox.Claimed != 5 || last < 30*time.Second || last > 31*time.Second+time.Second/2 {
			t.Errorf("%+v, the last after %v", counts, last)
		}
		for _, r := range rows(t, st) {
			if r.State != store.StateCompleted || r.Started != 0 || r.Attempts != 1 {
				t.Errorf("%+v", r)
			}
		}
	})
	bubble(t, "D5_a_message_that_is_begun_again_and_again_and_never_ends_is_parked", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 2)
		for range 3 { // three processes that die in their handlers
			claimed := dies(t, st, time.Second)
			if _, err := st.Start(t.Context(), []store.Claim{claimed[0].Claim}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		c := withoutSource(config(nil))
		c.IdleExit = time.Minute
		ran := map[string]int{}
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			ran[m.Identity.ID]++
			return add(ctx, tx, m)
		}, c)
		if counts.Inbox.Parked != 1 || counts.Inbox.Applied != 1 || len(ran) != 1 {
			t.Errorf("%+v, ran %v", counts, ran)
		}
		for _, r := range rows(t, st) {
			if parked := ran[r.Key.ID] == 0; parked != (r.State == store.StateParked) || parked && (r.Reason != reasonname.Kills || r.Started != 0) {
				t.Errorf("%+v", r)
			}
		}
	})
	bubble(t, "D5_trap_16_trap_T42_one_that_kills_its_process_again_and_again_is_parked_by_the_next", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 1)
		c := withoutSource(config(nil))
		c.Inbox.Lease, c.Timeout, c.Workers = 10*time.Second, 5*time.Second, 1
		ran, never := atomic.Int64{}, make(chan struct{})
		var dead []*runningConsumer
		for range 4 { // the start of the first process is counted after its lease has ended
			dead = append(dead, start(t, mustNew(t, st, func(context.Context, *memstore.Tx, *semel.Message) error {
				ran.Add(1)
				<-never
				return errTest
			}, withoutSource(c))))
			pass(30 * time.Second)
		}
		pass(5 * time.Minute) // processes whose workers are stuck also claim the row, and release it
		if r := row(t, st, "m0"); ran.Load() != 3 || r.State != store.StateParked || r.Reason != reasonname.Kills {
			t.Errorf("ran %d times, %+v", ran.Load(), r)
		}
		close(never)
		for _, run := range dead {
			run.stop()
			if err := run.wait(); err != nil {
				t.Error(err)
			}
		}
		if r := row(t, st, "m0"); r.State != store.StateParked {
			t.Errorf("%+v", r)
		}
	})
}

func TestLeasesOfTheLiving(t *testing.T) {
	bubble(t, "trap_T4_trap_T3_a_handler_of_three_leases_keeps_its_claim_and_runs_once", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 1)
		c := withoutSource(config(nil))
		c.Inbox.Lease, c.Timeout, c.IdleExit = 10*time.Second, time.Minute, 20*time.Second
		ran := atomic.Int64{}
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			ran.Add(1)
			pass(30 * time.Second)
			return add(ctx, tx, m)
		}
		first, second := mustNew(t, st, handle, c), mustNew(t, st, handle, withoutSource(c))
		one, two := start(t, first), start(t, second)
		for _, r := range []interface{ wait() error }{one, two} {
			if err := r.wait(); err != nil {
				t.Error(err)
			}
		}
		if ran.Load() != 1 || effect(t, st, "m0") != "1" || first.Counts().Inbox.Lost+second.Counts().Inbox.Lost+first.Counts().Inbox.Reclaimed+second.Counts().Inbox.Reclaimed != 0 {
			t.Errorf("ran %d times, %+v, %+v", ran.Load(), first.Counts(), second.Counts())
		}
	})
	bubble(t, "law_5_law_11_trap_122_trap_125_a_handler_that_does_not_end_loses_its_claim_and_nothing_of_it_commits", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 1)
		c := withoutSource(config(nil))
		c.Inbox.Lease, c.Timeout, c.Workers = 10*time.Second, 5*time.Second, 1
		goesOn := make(chan struct{})
		stuck := mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			<-goesOn
			return add(ctx, tx, m)
		}, c)
		frozen := start(t, stuck)
		pass(time.Second)
		c.IdleExit = time.Minute
		counts := runs(t, st, add, withoutSource(c))
		if counts.Inbox.Applied != 1 || effect(t, st, "m0") != "1" {
			t.Errorf("the heir has %+v, effect %q", counts, effect(t, st, "m0"))
		}
		close(goesOn)
		pass(time.Minute)
		if effect(t, st, "m0") != "1" || stuck.Counts().Inbox.Applied != 0 {
			t.Errorf("effect %q, the first process has %+v", effect(t, st, "m0"), stuck.Counts())
		}
		frozen.stop()
		if err := frozen.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "D3_what_was_claimed_ahead_and_not_begun_is_given_back", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 40)
		c := withoutSource(config(nil))
		c.Workers, c.Batch.MaxSize, c.Inbox.Lease, c.IdleExit = 1, 10, 9*time.Second, 20*time.Second
		c.Batch.MaxTime = time.Second
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			pass(time.Second)
			return add(ctx, tx, m)
		}
		counts := runs(t, st, handle, c)
		if counts.Inbox.Applied != 40 || counts.Inbox.Released == 0 || counts.Inbox.Lost != 0 || counts.Inbox.Claimed != 40+counts.Inbox.Released {
			t.Errorf("%+v", counts)
		}
		for _, r := range rows(t, st) {
			if r.Attempts != 1 || r.Started != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
	bubble(t, "D3_trap_T36_a_stop_gives_claims_back_at_once", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 100)
		c := withoutSource(config(nil))
		c.Workers, c.Batch.MaxSize = 1, 1
		consumer := mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			pass(time.Second)
			return add(ctx, tx, m)
		}, c)
		run := start(t, consumer)
		pass(2500 * time.Millisecond)
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
		waiting := 0
		for _, r := range rows(t, st) {
			if r.State == store.StateReceived {
				waiting++
			} else if r.State != store.StateCompleted {
				t.Errorf("%+v", r)
			}
		}
		if n := consumer.Counts().Inbox; waiting != 97 || n.Applied != 3 || n.Claimed != n.Applied+n.Released {
			t.Errorf("%d wait, %+v", waiting, n)
		}
	})
}

func TestAnInboxThatCannotBeAsked(t *testing.T) {
	for op, name := range map[string]string{
		"claim-before": "law_13_it_is_told_and_asked_on_and_the_source_is_read_meanwhile",
		"claim-after":  "law_11_what_a_lost_answer_took_is_found_by_its_token",
	} {
		bubble(t, name, func(t *testing.T) {
			down := atomic.Bool{}
			store := memstore.New(memstore.Fail(func(o string) error {
				if o == op && down.Load() {
					return errors.New("the server is gone")
				}
				return nil
			}))
			fillInbox(t, store, 50)
			down.Store(true)
			seen := &witness{}
			c := withoutSource(config(nil))
			c.Observers = []semel.Observer{seen}
			source := newListSource(numbered("n", 5)...)
			source.endless = true
			c.Source = source
			consumer := mustNew(t, store, add, c)
			run := start(t, consumer)
			pass(10 * time.Second)
			if ready, why := consumer.Ready(); ready || len(seen.eventsOf(semel.EventNotReady)) == 0 || consumer.Counts().Applied != 5 {
				t.Errorf("ready %t (%s), %+v", ready, why, consumer.Counts())
			}
			down.Store(false)
			pass(10 * time.Second) // less than a lease
			if ready, why := consumer.Ready(); !ready || consumer.Counts().Inbox.Applied != 50 {
				t.Errorf("ready %t (%s), %+v", ready, why, consumer.Counts())
			}
			run.stop()
			if err := run.wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAHandlerThatLosesItsClaim(t *testing.T) {
	bubble(t, "law_7_trap_128_one_row_that_a_person_takes_away_charges_nobody_of_its_batch", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 5)
		c := withoutSource(config(nil))
		c.Workers, c.Inbox.Lease, c.Timeout, c.Batch.MaxTime = 1, 9*time.Second, time.Minute, time.Minute
		c.IdleExit = time.Minute
		cancelled := 0
		running := mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			select {
			case <-ctx.Done():
				cancelled++
				return ctx.Err()
			case <-time.After(5 * time.Second):
				return add(ctx, tx, m)
			}
		}, c)
		run := start(t, running)
		pass(7 * time.Second) // the second process now runs the handler
		r := row(t, st, "m4")
		if err := errors.Join(st.Discard(t.Context(), store.Act{Verb: "discard", Who: "ann"}, r.Seen())...); err != nil {
			t.Fatal(err)
		}
		if err := run.wait(); err != nil {
			t.Error(err)
		}
		if n := running.Counts().Inbox; cancelled != 1 || n.Applied != 4 || n.Lost != 1 || n.Waiting != 0 || n.Claimed != 5 {
			t.Errorf("cancelled %d times, %+v", cancelled, n)
		}
		for _, r := range rows(t, st) {
			want, attempts := store.StateCompleted, 1
			if r.Key.ID == "m4" {
				want, attempts = store.StateDiscarded, 0
			}
			if r.State != want || r.Attempts != attempts || r.LastError != "" {
				t.Errorf("%+v", r)
			}
		}
	})
	bubble(t, "trap_125_it_is_cancelled_when_its_lease_could_not_be_renewed", func(t *testing.T) {
		down := atomic.Bool{}
		st := memstore.New(memstore.Fail(func(op string) error {
			if op == "claim-before" && down.Load() {
				return errTest
			}
			return nil
		}))
		fillInbox(t, st, 1)
		c := withoutSource(config(nil))
		c.Inbox.Lease, c.Timeout = 9*time.Second, time.Minute
		var after time.Duration
		running := mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if after > 0 {
				return add(ctx, tx, m)
			}
			down.Store(true)
			began := time.Now()
			<-ctx.Done()
			after = time.Since(began)
			if !errors.Is(context.Cause(ctx), store.ErrClaimLost) {
				t.Error(context.Cause(ctx))
			}
			return ctx.Err()
		}, c)
		run := start(t, running)
		pass(30 * time.Second)
		down.Store(false)
		pass(time.Minute)
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
		if r := row(t, st, "m0"); after < 9*time.Second || after > 12*time.Second || r.State != store.StateCompleted || r.Attempts != 1 || effect(t, st, "m0") != "1" {
			t.Errorf("cancelled after %v, %+v", after, r)
		}
	})
}

func TestClocksOfHosts(t *testing.T) {
	for name, skew := range map[string]time.Duration{"a_day_ahead": 24 * time.Hour, "a_day_behind": -24 * time.Hour} {
		bubble(t, "law_6_trap_123_a_store_whose_clock_differs_makes_no_difference/"+name, func(t *testing.T) {
			store := memstore.New(memstore.Clock(func() time.Time { return time.Now().Add(skew) }))
			fillInbox(t, store, 5)
			dies(t, store, 30*time.Second)
			c := withoutSource(config(nil))
			c.Inbox.Lease, c.Timeout, c.IdleExit, c.Workers = 9*time.Second, time.Minute, time.Minute, 1
			began, first := time.Now(), time.Duration(0)
			failed := map[string]time.Time{}
			counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				if first == 0 {
					first = time.Since(began)
				}
				if at, again := failed[m.Identity.ID]; !again {
					failed[m.Identity.ID] = time.Now()
					return semel.RetryAfter(errTest, 45*time.Second)
				} else if waited := time.Since(at); waited < 45*time.Second || waited > 75*time.Second {
					t.Errorf("%s waited %v", m.Identity.ID, waited)
				}
				if m.Identity.ID == "m3" { // the handler runs longer than a lease, so the lease is extended
					pass(25 * time.Second)
				}
				return add(ctx, tx, m)
			}, c)
			if counts.Inbox.Applied != 5 || counts.Inbox.Lost != 0 || first < 30*time.Second || first > 32*time.Second {
				t.Errorf("the first after %v, %+v", first, counts)
			}
		})
	}
}
