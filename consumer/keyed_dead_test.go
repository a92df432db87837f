package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestKeyedConsumersAndTheDead(t *testing.T) {
	well := func(made *callCounter) func(context.Context, consumer.Call, *semel.Message) error {
		return func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }
	}
	bubble(t, "B11_what_another_holds_is_no_duplicate_and_is_followed_within_its_lease", func(t *testing.T) {
		keys, made := memstore.NewKeys(), newCallCounter()
		diesHolding(t, keys, "m0", 30*time.Second)
		began := time.Now()
		counts := runsKeyed(t, keys, keptKeys, well(made), keyedConfigOf(newListSource(numbered("m", 3)...)))
		if took := time.Since(began); counts.Applied != 3 || counts.Duplicates != 0 || took < 30*time.Second || took > 45*time.Second {
			t.Errorf("%+v after %v", counts, took)
		}
		made.want(t, "m0", 1)
	})
	bubble(t, "E3_trap_119_what_is_unknown_is_not_repeated_after_the_window", func(t *testing.T) {
		keys, made := memstore.NewKeys(), newCallCounter()
		diesHolding(t, keys, "a", time.Second)
		pass(48 * time.Hour)
		g := bury(t, message("a", ""), message("b", ""))
		counts := runsKeyed(t, keys, keptKeys, well(made), keyedConfig(g))
		if counts.Applied != 1 || counts.DeadLettered != 1 || g.lies(t)["a"] != 1 {
			t.Errorf("%+v, %v", counts, g.lies(t))
		}
		made.want(t, "a", 0)
		if a := keyOf(t, keys, "a"); !a.Unknown() {
			t.Errorf("the key with the unknown outcome is %+v", a)
		}
	})
	bubble(t, "E3_the_other_side_is_asked_after_the_window", func(t *testing.T) {
		for finding, calls := range map[consumer.LookupResult]int{consumer.Happened: 0, consumer.DidNotHappen: 1} {
			keys, made := memstore.NewKeys(), newCallCounter()
			diesHolding(t, keys, "m0", time.Second)
			pass(48 * time.Hour)
			c := keyedConfigOf(newListSource(numbered("m", 1)...))
			c.Provider.Lookup = func(context.Context, *semel.Message) (consumer.LookupResult, error) { return finding, nil }
			if counts := runsKeyed(t, keys, keptKeys, well(made), c); counts.Applied != 1 {
				t.Errorf("%v: %+v", finding, counts)
			}
			made.want(t, "m0", calls)
			if a := keyOf(t, keys, "m0"); a.State != keystore.Completed {
				t.Errorf("%v: the key is %v", finding, a.State)
			}
		}
	})
	bubble(t, "law_5_a_slow_call_keeps_its_lease", func(t *testing.T) {
		keys, made := memstore.NewKeys(), newCallCounter()
		slow := func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			made.countCall(m)
			pass(29 * time.Second)
			return nil
		}
		config := func() consumer.Config {
			c := keyedConfigOf(newListSource(numbered("m", 2)...))
			c.Inbox.Lease = 2 * time.Second
			return c
		}
		one, other := start(t, mustNewKeyed(t, keys, keptKeys, slow, config())), start(t, mustNewKeyed(t, keys, keptKeys, slow, config()))
		if err := errors.Join(one.wait(), other.wait()); err != nil {
			t.Error(err)
		}
		made.want(t, "m0", 1)
		made.want(t, "m1", 1)
	})
	bubble(t, "law_5_a_call_ends_with_a_lease_that_nobody_can_extend", func(t *testing.T) {
		keys, away := &flaky{Store: memstore.NewKeys()}, true
		keys.fault = func(step string, _ bool) error {
			if step == "extend" && away {
				return errKeysAway
			}
			return nil
		}
		c := keyedConfigOf(newListSource(numbered("m", 1)...))
		c.Inbox.Lease, c.Timeout = 3*time.Second, time.Minute
		counts := runsKeyed(t, keys, keptKeys, func(ctx context.Context, _ consumer.Call, m *semel.Message) error {
			if !away {
				return nil
			}
			began := time.Now()
			<-ctx.Done()
			if took := time.Since(began); took > 3*time.Second || !errors.Is(context.Cause(ctx), store.ErrClaimLost) {
				t.Errorf("the handler's context ended after %v: %v", took, context.Cause(ctx))
			}
			away = false
			return ctx.Err()
		}, c)
		if counts.Applied != 1 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "E3_an_answer_that_says_no_speaks_for_all_calls_under_the_key", func(t *testing.T) {
		keys, made := memstore.NewKeys(), newCallCounter()
		diesHolding(t, keys, "a", time.Second)
		pass(time.Minute)
		g := bury(t, message("a", ""))
		counts := runsKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			made.countCall(m)
			return semel.Permanent(errTest)
		}, keyedConfig(g))
		if a := keyOf(t, keys, "a"); counts.DeadLettered != 1 || a.State != keystore.Failed {
			t.Errorf("%+v, and its key is %v, unknown %t", counts, a.State, a.Unknown())
		}
		made.want(t, "a", 1)
	})
	bubble(t, "law_5_nobody_calls_whose_claim_was_answered_after_its_lease", func(t *testing.T) {
		keys, made, late := &flaky{Store: memstore.NewKeys()}, newCallCounter(), true
		keys.fault = func(step string, after bool) error {
			if step == "claim" && after && late {
				late = false
				pass(4 * time.Second)
				diesHolding(t, keys.Store, "m0", 30*time.Second)
			}
			return nil
		}
		c := keyedConfigOf(newListSource(numbered("m", 1)...))
		c.Inbox.Lease = 3 * time.Second
		began := time.Now()
		counts := runsKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			if made.countCall(m); time.Since(began) < 34*time.Second {
				t.Errorf("the call was made after %v, while another process had the key", time.Since(began))
			}
			return nil
		}, c)
		if counts.Applied != 1 {
			t.Errorf("%+v", counts)
		}
		made.want(t, "m0", 1)
	})
	bubble(t, "E3_a_handler_that_panics_leaves_an_unknown_outcome", func(t *testing.T) {
		keys := memstore.NewKeys()
		g := bury(t, message("a", ""))
		c := keyedConfig(g)
		c.Retry.MaxAttempts = 1
		counts := runsKeyed(t, keys, keptKeys, func(context.Context, consumer.Call, *semel.Message) error { panic("x") }, c)
		if a := keyOf(t, keys, "a"); counts.DeadLettered != 1 || !a.Unknown() {
			t.Errorf("%+v, and its key is %+v", counts, a)
		}
	})
	bubble(t, "law_5_a_late_answer_changes_nothing", func(t *testing.T) {
		keys, made := &flaky{Store: memstore.NewKeys()}, newCallCounter()
		frozen := true
		keys.fault = func(step string, _ bool) error {
			if step == "extend" && frozen { // a frozen process cannot extend its lease
				return errKeysAway
			}
			return nil
		}
		c := keyedConfigOf(newListSource(numbered("m", 1)...))
		c.Inbox.Lease, c.Timeout = 3*time.Second, time.Minute
		ended := make(chan semel.Counts)
		go func() {
			ended <- runsKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
				if made.countCall(m) == 1 {
					pass(20 * time.Second)
				}
				return nil
			}, c)
		}()
		pass(10 * time.Second)
		second := runsKeyed(t, keys.Store, keptKeys, well(made), keyedConfigOf(newListSource(numbered("m", 1)...)))
		first := <-ended
		if second.Applied != 1 || first.Applied != 0 || first.Duplicates != 1 {
			t.Errorf("the second %+v, the first %+v", second, first)
		}
		made.want(t, "m0", 2) // the second call has the same key, and comes after the lease has ended
	})
}

func TestKeyedConsumersWithoutAnswers(t *testing.T) {
	bubble(t, "case_3_an_end_without_an_answer_is_asked_again_and_nobody_is_called_twice", func(t *testing.T) {
		for name, loses := range map[string]func(n int, after bool) bool{
			"its answer is lost":       func(n int, after bool) bool { return n < 3 && after },
			"it is not heard":          func(n int, after bool) bool { return n < 3 && !after },
			"for longer than a commit": func(n int, after bool) bool { return n < 90 && !after },
		} {
			keys, made := &flaky{Store: memstore.NewKeys()}, newCallCounter()
			n := 0
			keys.fault = func(step string, after bool) error {
				if step == "end" && loses(n, after) {
					n++
					return errKeysAway
				}
				return nil
			}
			counts := runsKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }, keyedConfigOf(newListSource(numbered("m", 1)...)))
			if counts.Applied != 1 || counts.Duplicates != 0 {
				t.Errorf("%s: %+v", name, counts)
			}
			made.want(t, "m0", 1)
		}
	})
	bubble(t, "case_3_a_claim_without_an_answer_is_asked_again_under_its_token", func(t *testing.T) {
		keys, made := &flaky{Store: memstore.NewKeys()}, newCallCounter()
		n := 0
		keys.fault = func(step string, after bool) error {
			if step == "claim" && after && n < 2 {
				n++
				return errKeysAway
			}
			return nil
		}
		began := time.Now()
		counts := runsKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }, keyedConfigOf(newListSource(numbered("m", 1)...)))
		if took := time.Since(began); counts.Applied != 1 || took > 5*time.Second {
			t.Errorf("%+v after %v", counts, took)
		}
		made.want(t, "m0", 1)
		if a := keyOf(t, keys, "m0"); a.Started != 1 {
			t.Errorf("the key has %d claims", a.Started)
		}
	})
	bubble(t, "law_13_C10_while_the_store_is_away_nobody_is_called_and_nothing_spins", func(t *testing.T) {
		keys, made := &flaky{Store: memstore.NewKeys()}, newCallCounter()
		began := time.Now()
		keys.fault = func(string, bool) error {
			if time.Since(began) < time.Hour {
				return errKeysAway
			}
			return nil
		}
		source := newListSource(numbered("m", 100)...)
		running := start(t, mustNewKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }, keyedConfigOf(source)))
		pass(time.Hour - time.Second)
		if asked := keys.claimed(); made.count("m0") != 0 || source.isSettled(0) != 0 || asked > 3000 {
			t.Errorf("%d calls, %d settled, %d asked in an hour", made.count("m0"), source.isSettled(0), asked)
		}
		if err := running.wait(); err != nil {
			t.Error(err)
		}
		made.want(t, "m99", 1)
	})
}
