package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

func TestResultsOfEveryForm(t *testing.T) {
	twice := append(numbered("m", 3), numbered("m", 3)...)
	bubble(t, "C12_a_handler_of_a_whole_batch_keeps_one_for_each_message", func(t *testing.T) {
		heard := duplicateResults{}
		c := config(newListSource(twice...))
		c.OnDuplicate = heard.hook
		running, err := consumer.NewBatch(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ms []*semel.Message) error {
			for _, m := range ms {
				if err := makes(ctx, tx, m); err != nil {
					return err
				}
			}
			return nil
		}, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := running.Run(t.Context()); err != nil || fmt.Sprint(heard) != "map[m0:[made of m0] m1:[made of m1] m2:[made of m2]]" {
			t.Errorf("%v, %v", err, heard)
		}
	})
	bubble(t, "C12_the_last_step_keeps_it", func(t *testing.T) {
		store, heard := memstore.New(), duplicateResults{}
		last := func(ctx context.Context, tx *memstore.Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
			return nil, consumer.KeepResult(ctx, tx, m, []byte("made of "+m.Identity.ID))
		}
		for range 2 {
			c := steppedConfig(newListSource(numbered("m", 3)...))
			c.OnDuplicate = heard.hook
			stepped(t, store, c, countedStep("reserve", nil), countedStep("ship", last))
		}
		if fmt.Sprint(heard) != "map[m0:[made of m0] m1:[made of m1] m2:[made of m2]]" {
			t.Errorf("%v", heard)
		}
	})
	bubble(t, "C12_one_that_was_processed_under_a_former_identity_has_its_result", func(t *testing.T) {
		store, heard := memstore.New(), duplicateResults{}
		run := func(change func(*consumer.Config)) {
			t.Helper()
			c := config(newListSource(newOrderEvent("o1", "e1", "1")))
			c.OnDuplicate = heard.hook
			change(&c)
			if _, err := consume(t, store, makes, c); err != nil {
				t.Fatal(err)
			}
		}
		run(func(c *consumer.Config) { c.Identity = byOrder })
		run(func(c *consumer.Config) {
			c.Identity, c.PreviousIdentity = byEvent, &consumer.PreviousIdentity{Identity: byOrder}
		})
		if fmt.Sprint(heard) != "map[e1:[made of o1]]" {
			t.Errorf("%v", heard)
		}
	})
	bubble(t, "C12_a_hook_that_never_succeeds_keeps_no_consumer_from_stopping", func(t *testing.T) {
		source := newListSource(twice...)
		source.endless = true
		c := config(source)
		c.OnDuplicate = func(context.Context, *semel.Message, []byte) error { return errors.New("never") }
		running := mustNew(t, memstore.New(), makes, c)
		run := start(t, running)
		pass(time.Minute)
		if ready, why := running.Ready(); ready {
			t.Errorf("it is ready: %s", why)
		}
		run.stop()
		began := time.Now()
		if err := run.wait(); err != nil || time.Since(began) > consumer.Defaults().Drain+5*time.Second {
			t.Errorf("it stopped after %v: %v", time.Since(began), err)
		}
		if source.settled["3"] != 0 || source.settled["0"] != 1 {
			t.Errorf("settled: %v", source.settled)
		}
	})
}
