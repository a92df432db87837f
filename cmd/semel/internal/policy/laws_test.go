package policy

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// wantFault fails the test unless one fault contains all texts of the parameter want.
func wantFault(t *testing.T, edits []string, want ...string) {
	t.Helper()
	p, faults := parse(policyCase{edits: edits})
	found := slices.ContainsFunc(faults, func(f shape.Fault) bool {
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(f.String(), w) })
	})
	if p != nil || !found {
		t.Errorf("no fault with %q in:\n%s", want, faultLines(faults))
	}
}

func TestWhatIsNoIdentityIsRefusedWithWhyAndWhatToUse(t *testing.T) {
	t.Run("A3_what_changes_between_copies_is_no_identity", func(t *testing.T) {
		for _, selector := range []string{"partition", "offset", "topic", "time", "header:traceparent"} {
			wantFault(t, []string{`id: "header:ce-id"`, "id: \"" + selector + "\""},
				"consumers.billing.identity.id:", "cannot be an identity: ", "use what the producer set once")
			wantFault(t, []string{`"header:ce-source"`, `"` + selector + `"`}, "consumers.billing.identity.source:", "cannot be an identity")
		}
	})
	t.Run("A3_coordinates_are_refused_inside_a_business_key", func(t *testing.T) {
		wantFault(t, []string{`id: "header:ce-id"`, `id: ["body:/order", offset]`}, "13:36: consumers.billing.identity.id[1]:", "cannot be an identity")
	})
	t.Run("A3_ids_minted_by_the_consumer_cannot_be_written", func(t *testing.T) {
		for _, s := range []string{"uuid", "now", "random", "attempt", "const:x"} {
			wantFault(t, []string{`id: "header:ce-id"`, `id: "` + s + `"`}, "consumers.billing.identity.id")
		}
	})
	t.Run("A3_the_brokers_own_id_is_not_available", func(t *testing.T) {
		wantFault(t, []string{`{id: "header:ce-id",`, `{broker: redelivery_only, id: "header:ce-id",`}, "identity.broker: this key is known and not yet available")
	})
	t.Run("A3_coordinates_are_parameters", func(t *testing.T) {
		if _, faults := parse(policyCase{edits: []string{`"body:/account"`, "offset"}}); len(faults) > 0 {
			t.Error(faultLines(faults))
		}
	})
}

func TestNoFaultShowsWhatTheEnvironmentHolds(t *testing.T) {
	t.Run("law_15_no_fault_shows_what_the_environment_holds", func(t *testing.T) {
		for _, c := range refusedPolicies() {
			if _, faults := parse(c); strings.Contains(faultLines(faults), "hunter2") {
				t.Errorf("%s:\n%s", c.name, faultLines(faults))
			}
		}
	})
}

func TestGoingOnWithoutTheStoreNeedsADeclaration(t *testing.T) {
	t.Run("trap_143_a_policy_pauses_unless_it_says_otherwise", func(t *testing.T) {
		for _, c := range acceptedPolicies() {
			if p, _ := parse(c); p == nil || p.Consumers[0].FailOpen {
				t.Errorf("%s does not pause", c.name)
			}
		}
	})
	t.Run("trap_143_to_go_on_is_refused", func(t *testing.T) {
		wantFault(t, inConsumer("on_store_down: apply"), "14:20: consumers.billing.on_store_down: the effect is in the store, so nothing can be applied while the store is down")
		wantFault(t, withValidHTTP("on_store_down: apply"), "consumers.billing.on_store_down: with lease a message is stored before its call")
		wantFault(t, inConsumer("fail_open: true"), "this key is unknown")
	})
}

func TestTheKnownMistakesOfConsumersAreRefused(t *testing.T) {
	t.Run("K1_mark_after_an_outside_effect", func(t *testing.T) {
		wantFault(t, []string{"      sql:", "      http: {url: \"http://bank\"}\n      sql:"}, "handler: sql and http exclude each other")
		wantFault(t, withHTTP("strategy: marker"), "handler.http: a call is not part of a transaction", "write strategy: lease")
	})
	t.Run("K1_memory_as_truth", func(t *testing.T) {
		wantFault(t, []string{"sqlite: {path: shop.db}", "memory: {}"}, "stores.shop.memory: this key is unknown")
		for _, path := range []string{":memory:", "./:memory:", "/var/lib/:memory:"} {
			wantFault(t, []string{"sqlite: {path: shop.db}", `sqlite: {path: "` + path + `"}`}, "stores.shop.sqlite.path: a database in memory forgets what was applied", "name a file, as shop.db")
		}
		wantFault(t, []string{"sqlite: {path: shop.db}", `sqlite: {path: "file:shop.db?mode=memory"}`}, "path must be a file, not a URI", "write the path alone")
		for _, place := range []string{"sqlite::memory:", "sqlite:./:memory:", "sqlite:file::memory:"} {
			if _, err := Bare(place); err == nil {
				t.Errorf("%s is a store", place)
			}
		}
	})
	t.Run("K1_key_without_consumer", func(t *testing.T) {
		p, _ := parse(policyCase{})
		if got := p.Consumers[0].Config().Name; got != "billing" {
			t.Errorf("the scope is %q", got)
		}
		wantFault(t, []string{"  billing:", "  \"\":"}, "a name has 1 to 100 characters")
	})
	t.Run("K1_retention_below_the_window", func(t *testing.T) {
		wantFault(t, inConsumer("retention: 1s"), "consumers.billing.retention: \"1s\" is out of range")
		if p, _ := parse(policyCase{edits: inConsumer("retention: 1h")}); p.Consumers[0].Config().Retention.Keep != time.Hour { // `semel run` compares this retention with the horizon
			t.Error("the retention is not the policy's")
		}
	})
	t.Run("K1_consumer_minted_ids", func(t *testing.T) {
		wantFault(t, []string{`id: "header:ce-id"`, "id: uuid"}, "unknown selector")
	})
	t.Run("K1_replay_of_a_side_effect_consumer", func(t *testing.T) {
		wantFault(t, withValidHTTP("replay: {allowed: true}"), "consumers.billing.replay.effects: none forbids external effects", "write effects: real if a second call is harmless, or looks: true")
	})
	t.Run("K1_receipt_without_backlog_metric", func(t *testing.T) {
		inbox := []string{"strategy: marker", "strategy: inbox"}
		wantFault(t, append(inbox, inConsumer("ack: after_receipt")...), "consumers.billing.ack: with after_receipt the broker's lag does not show waiting messages", "pending_age")
		if _, faults := parse(policyCase{edits: append(inbox, inConsumer("ack: after_receipt", "alerts: {pending_age: 60s}")...)}); len(faults) > 0 {
			t.Error(faultLines(faults))
		}
	})
	t.Run("K1_duplicate_as_error", func(t *testing.T) {
		wantFault(t, inConsumer("on_duplicate: halt"), "on_duplicate: \"halt\" is unknown here")
	})
	t.Run("K1_deltas_without_a_key", func(t *testing.T) {
		wantFault(t, []string{"    identity: {id: \"header:ce-id\", source: \"header:ce-source\"}\n", ""}, "copies of a message cannot be recognised")
	})
	t.Run("K1_check_then_act", func(t *testing.T) {
		p, faults := parse(policyCase{edits: []string{"strategy: marker", "strategy: {natural: {because: it looks first}}",
			"update accounts set balance = balance + :amount where id = :account",
			"insert into a select :account, :amount where not exists (select 1 from a)"}})
		if len(faults) > 0 || !strings.Contains(faultLines(p.Warnings), "inserts without a conflict clause") {
			t.Errorf("%v", faults)
		}
	})
}

func TestAPolicyWithoutFaultsIsAConfigurationTheLibraryAccepts(t *testing.T) {
	for _, c := range acceptedPolicies() {
		t.Run(c.name, func(t *testing.T) {
			p, _ := parse(c)
			if p == nil {
				t.Fatal("faults")
			}
			for _, consumer := range p.Consumers {
				if err := constructConsumer(consumer); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func constructConsumer(p *Consumer) (err error) {
	switch {
	case p.isPure():
		_, err = consumer.NewCalling(memstore.New(), func(context.Context, *semel.Message) (int, error) { return 0, nil },
			func(context.Context, *memstore.Tx, int, *semel.Message) error { return nil }, p.Config())
	case p.Strategy.Lease:
		_, err = consumer.NewLeased(memstore.New(), func(context.Context, consumer.Call, *semel.Message) error { return nil }, p.Config())
	default:
		_, err = consumer.New(memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return nil }, p.Config())
	}
	return err
}

func TestDefaultsAreTheLibrarys(t *testing.T) {
	p, _ := parse(policyCase{})
	c := p.Consumers[0].Config()
	if c.Workers != consumer.Defaults().Workers || c.Timeout != consumer.Defaults().Timeout || c.Drain != consumer.Defaults().Drain || c.MaxInMemoryWait != consumer.Defaults().MaxInMemoryWait ||
		c.Retry != (consumer.RetryPolicy{MaxAttempts: consumer.Defaults().Retry.MaxAttempts, InitialDelay: consumer.Defaults().Retry.InitialDelay, MaxDelay: consumer.Defaults().MaxInMemoryWait, SerialAfter: consumer.Defaults().Retry.SerialAfter,
			Budget: consumer.RetryBudget{PerSecond: consumer.Defaults().Retry.Budget.PerSecond, Percent: consumer.Defaults().Retry.Budget.Percent}}) ||
		c.Batch != (consumer.BatchLimits{MaxSize: consumer.Defaults().Batch.MaxSize, MaxTime: consumer.Defaults().Batch.MaxTime}) ||
		c.MaxUnacked != (source.Bound{Messages: consumer.Defaults().MaxUnacked.Messages, Bytes: consumer.Defaults().MaxUnacked.Bytes}) {
		t.Errorf("%+v", c)
	}
}

func TestTheExamplesHaveNoFaultsAndNoWarnings(t *testing.T) {
	for _, name := range examples(t) {
		p, faults := Load(name, environment)
		if len(faults) > 0 || len(p.Warnings) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

func FuzzEveryFaultHasAPlaceAndARemedy(f *testing.F) {
	for _, c := range append(acceptedPolicies(), refusedPolicies()...) {
		f.Add(c.policy())
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, faults := Parse("p.yaml", []byte(text), environment)
		if (p == nil) != (len(faults) > 0) {
			t.Fatalf("a policy and %d faults", len(faults))
		}
		for i, fault := range faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Reason == "" || fault.Remedy == "" || fault.Kind == shape.Warning {
				t.Errorf("%+v", fault)
			}
			if i > 0 && shape.ComparePlaces(faults[i-1], fault) > 0 {
				t.Errorf("%v stands before %v", faults[i-1], fault)
			}
		}
		if p == nil {
			return
		}
		for _, c := range p.Consumers {
			if err := constructConsumer(c); err != nil {
				t.Error(err)
			}
		}
	})
}
