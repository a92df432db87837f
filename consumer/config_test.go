package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// faultyConfigs are invalid configurations. Each error must contain the name of the faulty field of Config, which is
// the value of field.
var faultyConfigs = []struct {
	field string
	set   func(c *consumer.Config)
}{
	{"Name", func(c *consumer.Config) { c.Name = "" }},
	{"Name", func(c *consumer.Config) { c.Name = "a\nb" }},
	{"Name", func(c *consumer.Config) { c.Name = strings.Repeat("x", 256) }},
	{"Name", func(c *consumer.Config) { c.Name = "\xff" }},
	{"Identity", func(c *consumer.Config) { c.Identity = nil }},
	{"Identity", func(c *consumer.Config) { c.Identity = identity.By("offset") }},
	{"Fingerprint", func(c *consumer.Config) { c.Fingerprint = identity.FingerprintOf("offset") }},
	{"Identity", func(c *consumer.Config) { c.Identity = identity.By("header:X-Attempt-Id") }},
	{"Fingerprint", func(c *consumer.Config) {
		c.Identity, c.Fingerprint = identity.By("key", "const:orders"), identity.FingerprintNone()
	}},
	{"Strategy", func(c *consumer.Config) { c.Strategy = 99 }},
	{"NaturalReason", func(c *consumer.Config) { c.Strategy = consumer.StrategyNatural }},
	{"NaturalReason", func(c *consumer.Config) { c.NaturalReason = "order: irrelevant" }},
	{"OnConflict", func(c *consumer.Config) { c.OnConflict = consumer.ActionDiscard }},
	{"OnConflict", func(c *consumer.Config) { c.OnConflict = consumer.ActionRetry }},
	{"OnBadIdentity", func(c *consumer.Config) { c.OnBadIdentity = consumer.ActionDiscard }},
	{"OnBadIdentity", func(c *consumer.Config) { c.OnBadIdentity = consumer.ActionKeepFirst }},
	{"OnPrecondition", func(c *consumer.Config) { c.OnPrecondition = consumer.ActionHalt }},
	{"Retry.OnExhausted", func(c *consumer.Config) { c.Retry.OnExhausted = consumer.ActionDiscard }},
	{"Lanes", func(c *consumer.Config) { c.Lanes = 9 }},
	{"Workers", func(c *consumer.Config) { c.Workers = -1 }},
	{"Workers", func(c *consumer.Config) { c.Workers = 1025 }},
	{"Batch.MaxSize", func(c *consumer.Config) { c.Batch.MaxSize = 10001 }},
	{"Batch.MaxTime", func(c *consumer.Config) { c.Batch.MaxTime = -time.Second }},
	{"MaxUnacked.Messages", func(c *consumer.Config) { c.MaxUnacked.Messages = -5 }},
	{"MaxUnacked.Bytes", func(c *consumer.Config) { c.MaxUnacked.Bytes = -5 }},
	{"Retry.MaxAttempts", func(c *consumer.Config) { c.Retry.MaxAttempts = -1 }},
	{"Retry.InitialDelay", func(c *consumer.Config) { c.Retry.InitialDelay = -time.Second }},
	{"Retry.InitialDelay", func(c *consumer.Config) { c.Retry.InitialDelay, c.Retry.MaxDelay = 2*time.Second, time.Second }},
	{"Retry.MaxDelay", func(c *consumer.Config) { c.Retry.MaxDelay = 9000 * time.Hour }},
	{"AckOnReceipt", func(c *consumer.Config) { c.AckOnReceipt = true }},
	{"Inbox.Lease", func(c *consumer.Config) { c.Inbox.Lease = 10 * time.Millisecond }},
	{"Inbox.Lease", func(c *consumer.Config) { c.Inbox.Lease = 2 * time.Hour }},
	{"Inbox.Poll", func(c *consumer.Config) { c.Inbox.Poll = -time.Second }},
	{"Inbox.Poll", func(c *consumer.Config) { c.Inbox.Poll = time.Hour }},
	{"Inbox.MaxCrashes", func(c *consumer.Config) { c.Inbox.MaxCrashes = 101 }},
	{"Canary", func(c *consumer.Config) { c.Canary = -1 }},
	{"Canary", func(c *consumer.Config) { c.Canary = 1_000_000_001 }},
	{"Timeout", func(c *consumer.Config) { c.Timeout = time.Nanosecond }},
	{"MaxInMemoryWait", func(c *consumer.Config) { c.MaxInMemoryWait = 2 * time.Hour }},
	{"Drain", func(c *consumer.Config) { c.Drain = -time.Second }},
	{"CommitTimeout", func(c *consumer.Config) { c.CommitTimeout = time.Nanosecond }},
	{"IdleExit", func(c *consumer.Config) { c.IdleExit = -time.Second }},
}

func TestConfig(t *testing.T) {
	t.Run("each_fault_is_refused_and_named", func(t *testing.T) {
		for i, f := range faultyConfigs {
			c := config(nil)
			f.set(&c)
			running, err := consumer.New(memstore.New(), add, c)
			if err == nil || running != nil || !strings.Contains(err.Error(), f.field+": ") {
				t.Errorf("fault %d of %s: %v", i, f.field, err)
			}
		}
	})
	t.Run("K1_all_faults_are_reported_at_once", func(t *testing.T) {
		var c consumer.Config
		c.Strategy, c.OnConflict, c.Workers, c.MaxInMemoryWait, c.Timeout = 99, consumer.ActionRetry, -1, -1, -1
		_, err := consumer.New(store.TxStore[*memstore.Tx](nil), nil, c)
		text := fmt.Sprint(err)
		for _, want := range []string{"Name: ", "Strategy: ", "OnConflict: ", "Workers: ", "MaxInMemoryWait: ", "Timeout: ", "the handler is nil", "the store is nil"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s", want, text)
			}
		}
		if _, err := consumer.NewBatch(memstore.New(), (func(context.Context, *memstore.Tx, []*semel.Message) error)(nil), config(nil)); err == nil || !strings.Contains(err.Error(), "the handler is nil") {
			t.Errorf("NewBatch says %v", err)
		}
	})
	t.Run("the_defaults_are_no_fault", func(t *testing.T) {
		if _, err := consumer.New(memstore.New(), add, consumer.Config{Name: "billing", Identity: identity.CloudEvents()}); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "a_schema_that_does_not_fit_is_an_error_before_anything_is_fetched", func(t *testing.T) {
		source := newListSource(message("1", `{}`))
		unfit := store.TxStore[*memstore.Tx](unfit{memstore.New()})
		if err := mustNew(t, unfit, add, config(source)).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "semel migrate up") || source.fetches != 0 {
			t.Errorf("Run says %v after %d fetches", err, source.fetches)
		}
		if _, err := mustNew(t, unfit, add, config(nil)).Process(t.Context(), message("1", `{}`)); err == nil {
			t.Error("Process says nothing")
		}
	})
	bubble(t, "a_source_that_needs_positions_is_refused_by_a_store_that_keeps_none", func(t *testing.T) {
		source := &positioned{listSource: newListSource(message("1", `{}`))}
		if err := mustNew(t, store.TxStore[*memstore.Tx](bare{memstore.New()}), add, unparked(source)).Run(t.Context()); err == nil || source.fetches != 0 {
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
		sizes.onBegin = func(_ context.Context, marks []store.Mark) error { most = max(most, len(marks)); return nil }
		c := config(newListSource(numbered("m", 20)...))
		c.Workers = 1
		if counts := runs(t, &limitedStore{sizes}, add, c); counts.Applied != 20 || most != 3 {
			t.Errorf("%+v, batches of %d", counts, most)
		}
	})
}

// unfit is a store whose schema does not fit this release.
type unfit struct{ *memstore.Store }

func (unfit) Check(context.Context) error {
	return fmt.Errorf("table semel_marker is missing; run semel migrate up: %w", semel.ErrSchema)
}

// limitedStore is a store whose batches have at most three messages.
type limitedStore struct{ *watchedStore }

func (*limitedStore) Limits() store.Limits { return store.Limits{Batch: 3} }

// positioned is a source that stores its positions in the store.
type positioned struct {
	*listSource
	consumer string
}

func (s *positioned) Info() source.Info {
	return source.Info{Positions: func(consumer string, _ source.PositionStore) { s.consumer = consumer }}
}
