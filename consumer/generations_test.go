package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// turn switches from the first generation to the second. First, turn fences the generations, so that no batch can begin
// in them during the switch.
func turn(t *testing.T, s *memstore.Store) {
	t.Helper()
	by := store.Act{Verb: "switch", Who: "ana", Why: "x"}
	_, err := s.OpenGeneration(t.Context(), "billing", by)
	for _, n := range []int64{0, 1} {
		err = errors.Join(err, s.FenceGeneration(t.Context(), "billing", n, time.Minute))
	}
	if err = errors.Join(err, s.SwitchGeneration(t.Context(), "billing", 0, 1, by)); err != nil {
		t.Fatal(err)
	}
}

// inGenerations runs a consumer that counts effects by generation. The source of the consumer delivers all messages in
// each generation.
func inGenerations(t *testing.T, s *memstore.Store, all []*semel.Message) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.InGenerations(ctx, s, "billing", func(ctx context.Context, g consumer.Generation) error {
			source := newListSource(all...)
			source.endless = true
			c := config(source)
			c.Generation = &g
			return mustNew(t, s, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				return tx.Add(fmt.Sprintf("effect %s in %d", m.Identity.ID, g.Number), 1)
			}, c).Run(ctx)
		})
	}()
	return func() error { cancel(); return <-ended }
}

func TestAConsumerWorksInTheGenerationThatIsActive(t *testing.T) {
	bubble(t, "G2_it_goes_on_in_another_by_itself_and_each_recognises_its_own", func(t *testing.T) {
		s := memstore.New()
		stop := inGenerations(t, s, numbered("m", 3))
		pass(heard)
		if effect(t, s, "m0 in 0") != "1" || effect(t, s, "m0 in 1") != "" {
			t.Error("the consumer does not work in the first generation")
		}
		turn(t, s)
		pass(heard)
		for _, id := range []string{"m0", "m1", "m2"} {
			if zero, one := effect(t, s, id+" in 0"), effect(t, s, id+" in 1"); zero != "1" || one != "1" {
				t.Errorf("%s took effect %q times in the first and %q in the second", id, zero, one)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "G2_while_a_switch_is_under_way_it_waits_and_goes_on_where_that_fails", func(t *testing.T) {
		s := memstore.New()
		stop := inGenerations(t, s, numbered("m", 3))
		pass(heard)
		if err := s.FenceGeneration(t.Context(), "billing", 0, time.Minute); err != nil {
			t.Fatal(err)
		}
		pass(heard)
		if err := s.LiftFences(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		pass(heard)
		if effect(t, s, "m2 in 0") != "1" {
			t.Error("a message took effect twice, or never")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A process that was frozen during a switch does not notice the switch, because its watcher was frozen too. The test
// simulates a frozen process by a consumer without a watcher.
func TestAProcessThatWasFrozenDuringASwitch(t *testing.T) {
	bubble(t, "law_12_it_applies_and_settles_nothing_in_the_generation_that_is_over", func(t *testing.T) {
		s := memstore.New()
		if err := s.BeginGenerations(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		turn(t, s)
		source := newListSource(numbered("m", 2)...)
		source.endless = true
		c := config(source)
		c.Generation = &consumer.Generation{Number: 0}
		frozen := mustNew(t, s, add, c)
		run := start(t, frozen)
		pass(time.Hour)
		if effect(t, s, "m0") != "" || source.isSettled(0) != 0 {
			t.Error("a message took effect, or was settled, in the old generation")
		}
		if ready, why := frozen.Ready(); ready || !strings.Contains(why, "generation 0 of consumer billing is not active") {
			t.Errorf("ready %t: %s", ready, why)
		}
		run.stop()
		if n := frozen.Counts(); n.Retried != 0 || n.Applied != 0 || n.Parked != 0 {
			t.Errorf("a message was charged with an attempt: %+v", n)
		}
	})
	bubble(t, "G2_a_switch_alarms_nobody_and_one_that_was_not_heard_of_does", func(t *testing.T) {
		s := memstore.New()
		if err := s.BeginGenerations(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		turn(t, s)
		var log log
		source := newListSource(numbered("m", 2)...)
		source.endless = true
		c := config(source)
		c.Generation, c.Logger = &consumer.Generation{Number: 0}, slog.New(slog.NewTextHandler(&log, nil))
		run := start(t, mustNew(t, s, add, c))
		pass(50 * time.Second)
		if told := linesWith(log.String(), "level=INFO msg=\"its generation is switched"); len(told) != 1 || len(linesWith(log.String(), "level=WARN")) != 0 {
			t.Errorf("the log of a switch:\n%s", log.String())
		}
		pass(time.Minute)
		if len(linesWith(log.String(), "level=WARN msg=\"store still does not work")) != 1 {
			t.Errorf("the log of a process that no switch turned:\n%s", log.String())
		}
		run.stop()
	})
	bubble(t, "law_12_a_switch_waits_for_the_batch_that_it_has_open", func(t *testing.T) {
		s := memstore.New()
		if err := s.BeginGenerations(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		thawed := make(chan struct{})
		source := newListSource(numbered("m", 1)...)
		source.endless = true
		c := config(source)
		c.Generation, c.Timeout = &consumer.Generation{Number: 0}, time.Hour
		run := start(t, mustNew(t, s, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			<-thawed
			return add(ctx, tx, m)
		}, c))
		synctest.Wait()
		stands := make(chan error, 1)
		go func() { stands <- s.FenceGeneration(t.Context(), "billing", 0, admin.LongestFence) }()
		synctest.Wait()
		select {
		case <-stands:
			t.Error("the fence did not wait for the open batch")
		default:
		}
		close(thawed)
		if err := <-stands; err != nil || effect(t, s, "m0") != "1" {
			t.Errorf("%v; the effect is %q", err, effect(t, s, "m0"))
		}
		run.stop()
	})
}

func TestARebuild(t *testing.T) {
	bubble(t, "G2_ends_when_its_generation_is_switched_to_or_dropped", func(t *testing.T) {
		for _, dropped := range []bool{false, true} {
			s := memstore.New()
			by := store.Act{Verb: "x", Who: "ana", Why: "x"}
			err := s.BeginGenerations(t.Context(), "billing")
			if _, opened := s.OpenGeneration(t.Context(), "billing", by); errors.Join(err, opened) != nil {
				t.Fatal(err, opened)
			}
			ended := make(chan generations.State, 1)
			go func() {
				is, err := consumer.Generation{Number: 1, Building: true}.Rebuild(t.Context(), s, "billing", func(ctx context.Context, g consumer.Generation) error {
					source := newListSource(numbered("m", 2)...)
					source.endless = true
					c := config(source)
					c.Generation = &g
					return mustNew(t, s, add, c).Run(ctx)
				})
				if err != nil {
					t.Error(err)
				}
				ended <- is
			}()
			pass(heard)
			if effect(t, s, "m1") != "1" {
				t.Error("it applies nothing")
			}
			want := generations.Active
			if dropped {
				want = generations.Dropped
				err = s.EndGeneration(t.Context(), "billing", 1, by)
			} else {
				err = errors.Join(s.FenceGeneration(t.Context(), "billing", 0, time.Minute), s.FenceGeneration(t.Context(), "billing", 1, time.Minute), s.SwitchGeneration(t.Context(), "billing", 0, 1, by))
			}
			if err != nil {
				t.Fatal(err)
			}
			if is := <-ended; is != want {
				t.Errorf("it is %v, want %v", is, want)
			}
		}
	})
}

func TestAGenerationIsRefused(t *testing.T) {
	t.Run("G2_where_the_name_or_the_strategy_or_the_store_does_not_fit", func(t *testing.T) {
		c := config(nil)
		c.Name = "billing@2"
		if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "name of generation 2") {
			t.Errorf("%v", err)
		}
		c = config(nil)
		c.Generation, c.Strategy, c.NaturalReason = &consumer.Generation{Number: 1, Building: true}, consumer.StrategyNatural, "x"
		if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "Generation.Building") {
			t.Errorf("%v", err)
		}
		c = config(nil)
		c.Generation = &consumer.Generation{}
		if _, err := consumer.New(store.TxStore[*memstore.Tx](struct{ store.TxStore[*memstore.Tx] }{memstore.New()}), add, c); !errors.Is(err, semel.ErrUnsupported) {
			t.Errorf("%v", err)
		}
	})
	t.Run("law_12_in_a_transaction_of_the_users", func(t *testing.T) {
		c := config(nil)
		c.Generation = &consumer.Generation{}
		s := memstore.New()
		b, _, err := s.Begin(t.Context(), store.TxOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Rollback(t.Context())
		one := mustNew(t, s, add, c)
		if _, err := one.TryMark(t.Context(), b.Tx(store.All), message("m", "{}")); !errors.Is(err, semel.ErrUnsupported) {
			t.Errorf("TryMark: %v", err)
		}
		if _, err := one.Accept(t.Context(), b.Tx(store.All), message("m", "{}")); !errors.Is(err, semel.ErrUnsupported) {
			t.Errorf("Accept: %v", err)
		}
	})
}
