package semel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

// faultyConfigs are wrong values, each with the field that the error must name.
var faultyConfigs = []struct {
	field string
	set   func(c *semel.Config)
}{
	{"Name", func(c *semel.Config) { c.Name = "" }},
	{"Name", func(c *semel.Config) { c.Name = "a\nb" }},
	{"Name", func(c *semel.Config) { c.Name = strings.Repeat("x", 256) }},
	{"Name", func(c *semel.Config) { c.Name = "\xff" }},
	{"Identity", func(c *semel.Config) { c.Identity = nil }},
	{"Identity", func(c *semel.Config) { c.Identity = semel.By("offset") }},
	{"Fingerprint", func(c *semel.Config) { c.Fingerprint = semel.FingerprintOf("offset") }},
	{"Strategy", func(c *semel.Config) { c.Strategy = 99 }},
	{"NaturalBecause", func(c *semel.Config) { c.Strategy = semel.StrategyNatural }},
	{"NaturalBecause", func(c *semel.Config) { c.NaturalBecause = "order: irrelevant" }},
	{"OnConflict", func(c *semel.Config) { c.OnConflict = semel.ThenDiscard }},
	{"OnConflict", func(c *semel.Config) { c.OnConflict = semel.ThenRetry }},
	{"OnBadIdentity", func(c *semel.Config) { c.OnBadIdentity = semel.ThenDiscard }},
	{"OnBadIdentity", func(c *semel.Config) { c.OnBadIdentity = semel.ThenAcceptFirst }},
	{"OnUnmet", func(c *semel.Config) { c.OnUnmet = semel.ThenHalt }},
	{"Retry.Then", func(c *semel.Config) { c.Retry.Then = semel.ThenDiscard }},
	{"Lanes", func(c *semel.Config) { c.Lanes = 9 }},
	{"Workers", func(c *semel.Config) { c.Workers = -1 }},
	{"Workers", func(c *semel.Config) { c.Workers = 1025 }},
	{"Batch.Most", func(c *semel.Config) { c.Batch.Most = 10001 }},
	{"Batch.Time", func(c *semel.Config) { c.Batch.Time = -time.Second }},
	{"MaxUnsettled.Messages", func(c *semel.Config) { c.MaxUnsettled.Messages = -5 }},
	{"MaxUnsettled.Bytes", func(c *semel.Config) { c.MaxUnsettled.Bytes = -5 }},
	{"Retry.Attempts", func(c *semel.Config) { c.Retry.Attempts = -1 }},
	{"Retry.First", func(c *semel.Config) { c.Retry.First = -time.Second }},
	{"Retry.Most", func(c *semel.Config) { c.Retry.First, c.Retry.Most = 2*time.Second, time.Second }},
	{"Retry.Most", func(c *semel.Config) { c.Retry.Most = time.Minute }},
	{"Timeout", func(c *semel.Config) { c.Timeout = time.Nanosecond }},
	{"Hold", func(c *semel.Config) { c.Hold = 2 * time.Hour }},
	{"Drain", func(c *semel.Config) { c.Drain = -time.Second }},
	{"CommitTimeout", func(c *semel.Config) { c.CommitTimeout = time.Nanosecond }},
	{"IdleExit", func(c *semel.Config) { c.IdleExit = -time.Second }},
}

func TestConfig(t *testing.T) {
	t.Run("each_fault_is_refused_and_named", func(t *testing.T) {
		for i, f := range faultyConfigs {
			c := config(nil)
			f.set(&c)
			consumer, err := semel.New(memstore.New(), add, c)
			if err == nil || consumer != nil || !strings.Contains(err.Error(), f.field+": ") {
				t.Errorf("fault %d of %s: %v", i, f.field, err)
			}
		}
	})
	t.Run("K1_all_faults_are_reported_at_once", func(t *testing.T) {
		var c semel.Config
		c.Strategy, c.OnConflict, c.Workers, c.Hold, c.Timeout = 99, semel.ThenRetry, -1, -1, -1
		_, err := semel.New(semel.TxStore[*memstore.Tx](nil), nil, c)
		text := fmt.Sprint(err)
		for _, want := range []string{"Name: ", "Strategy: ", "OnConflict: ", "Workers: ", "Hold: ", "Timeout: ", "the handler is nil", "the store is nil"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s", want, text)
			}
		}
		if _, err := semel.NewAll(memstore.New(), (func(context.Context, *memstore.Tx, []*semel.Message) error)(nil), config(nil)); err == nil || !strings.Contains(err.Error(), "the handler is nil") {
			t.Errorf("NewAll says %v", err)
		}
	})
	t.Run("the_defaults_are_no_fault", func(t *testing.T) {
		if _, err := semel.New(memstore.New(), add, semel.Config{Name: "billing", Identity: semel.CloudEvents()}); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "a_schema_that_does_not_fit_is_an_error_before_anything_is_fetched", func(t *testing.T) {
		source := newListSource(message("1", `{}`))
		unfit := semel.TxStore[*memstore.Tx](unfit{memstore.New()})
		if err := mustNew(t, unfit, add, config(source)).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "semel migrate up") || source.fetches != 0 {
			t.Errorf("Run says %v after %d fetches", err, source.fetches)
		}
		if _, err := mustNew(t, unfit, add, config(nil)).Process(t.Context(), message("1", `{}`)); err == nil {
			t.Error("Process says nothing")
		}
	})
	bubble(t, "a_source_that_needs_positions_is_refused_by_a_store_that_keeps_none", func(t *testing.T) {
		source := &positioned{listSource: newListSource(message("1", `{}`))}
		if err := mustNew(t, semel.TxStore[*memstore.Tx](bare{memstore.New()}), add, config(source)).Run(t.Context()); err == nil || source.fetches != 0 {
			t.Errorf("Run says %v after %d fetches", err, source.fetches)
		}
		runs(t, memstore.New(), add, config(source))
		if source.consumer != "billing" {
			t.Errorf("the source was told of %q", source.consumer)
		}
	})
	bubble(t, "a_store_that_limits_the_batch_is_obeyed", func(t *testing.T) {
		sizes := watch(memstore.New())
		most := 0
		sizes.onBegin = func(_ context.Context, marks []semel.Mark) error { most = max(most, len(marks)); return nil }
		c := config(newListSource(numbered("m", 20)...))
		c.Workers = 1
		if counts := runs(t, &limited{sizes}, add, c); counts.Applied != 20 || most != 3 {
			t.Errorf("%+v, batches of %d", counts, most)
		}
	})
}

// unfit is a store whose tables do not fit.
type unfit struct{ *memstore.Store }

func (unfit) Check(context.Context) error {
	return fmt.Errorf("table semel_marker is missing; run semel migrate up: %w", semel.ErrSchema)
}

// limited is a store that takes batches of three.
type limited struct{ *watchedStore }

func (*limited) BatchLimit() int { return 3 }

// positioned is a source that needs positions.
type positioned struct {
	*listSource
	consumer string
}

func (s *positioned) Positions(consumer string, _ semel.PositionStore) { s.consumer = consumer }
