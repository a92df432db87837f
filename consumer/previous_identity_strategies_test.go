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
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// oneGeneration is a store whose table of markers can contain ids of only one kind of identity, such as the user's own
// table or a partitioned table.
type oneGeneration struct{ *memstore.Store }

func (s oneGeneration) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	if generation != 0 {
		return 0, fmt.Errorf("it has no column for a generation: %w", semel.ErrUnsupported)
	}
	return s.Store.Scope(ctx, consumer, source, generation)
}

// byDay is a oneGeneration with daily partitions.
type byDay struct{ oneGeneration }

func (byDay) Limits() store.Limits { return store.Limits{PartitionedBy: "uuidv7"} }

func TestAFormerIdentityBesideEachStrategy(t *testing.T) {
	former := &consumer.PreviousIdentity{Identity: byOrder}
	natural := func(c *consumer.Config) { c.Strategy, c.NaturalReason = consumer.StrategyNatural, "a test" }
	version := func(c *consumer.Config) {
		c.Version = &consumer.VersionPolicy{By: identity.Stream("key").At("header:n")}
	}
	for name, c := range map[string]struct {
		change  func(*consumer.Config)
		refused string
	}{
		"A7_marker":                 {change: func(*consumer.Config) {}},
		"A7_inbox":                  {change: func(c *consumer.Config) { c.Strategy = consumer.StrategyInbox }},
		"A7_lanes_by_key":           {change: func(c *consumer.Config) { c.Lanes = consumer.LanesKey }},
		"A7_retention":              {change: func(c *consumer.Config) { c.Retention.Keep = 1e15 }},
		"A7_natural":                {natural, "writes no markers"},
		"A7_business_key":           {func(c *consumer.Config) { c.Strategy = consumer.StrategyBusinessKey }, "writes no markers"},
		"A7_versions":               {version, "and Version are both set"},
		"A7_without_a_fingerprint":  {func(c *consumer.Config) { c.Fingerprint = identity.FingerprintNone() }, "all but one would be lost"},
		"A7_versions_of_an_inbox":   {func(c *consumer.Config) { version(c); c.Strategy = consumer.StrategyInbox }, "and Version are both set"},
		"A7_natural_with_a_version": {func(c *consumer.Config) { natural(c); version(c) }, "PreviousIdentity: is set"},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			newRelease(t, store, byOrder, nil, nil).wantEnding(source.EndApplied, newOrderEvent("1", "a", "one"))
			config := consumer.Config{Name: "billing", Identity: byEvent, PreviousIdentity: former, Logger: quiet()}
			if c.change(&config); c.refused != "" {
				_, err := consumer.New(store, add, config)
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, want an error that says %q", err, c.refused)
				}
				return
			}
			newer := newRelease(t, store, byEvent, former, c.change)
			known, other := newOrderEvent("1", "a", "one"), newOrderEvent("2", "b", "two")
			for _, m := range []*semel.Message{known, other} { // a message needs a time because the policy has a retention
				m.Origin.Written = uint32(time.Now().Unix())
			}
			newer.wantEnding(source.EndDuplicate, known)
			newer.wantEnding(source.EndApplied, other)
		})
	}
}

func TestAnotherIdentityOnATableThatHasOne(t *testing.T) {
	check := func(st oneGeneration, by identity.Identity, former *consumer.PreviousIdentity) error {
		running, err := consumer.New(st, add, consumer.Config{Name: "billing", Identity: by, PreviousIdentity: former, Logger: quiet()})
		if err == nil {
			err = running.Check(t.Context())
		}
		return err
	}
	for name, former := range map[string]*consumer.PreviousIdentity{"A7_with_a_former_one_it_is_refused_and_not_recorded": {Identity: byOrder}, "A7_after_the_first_was_retired_it_is_refused_and_not_recorded": nil} {
		t.Run(name, func(t *testing.T) {
			st := oneGeneration{memstore.New()}
			if err := check(st, byOrder, nil); err != nil {
				t.Fatal(err)
			}
			if former == nil {
				if err := st.RetireDerivation(t.Context(), "billing", 0, true, store.Act{Verb: "retire", Who: "a test"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := check(st, byEvent, former); !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "give it its former identity back") {
				t.Errorf("got %v", err)
			}
			if all, err := st.Derivations(t.Context(), "billing"); err != nil || len(all) != 1 {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
	t.Run("A7_beside_days_it_is_refused_by_New", func(t *testing.T) {
		_, err := consumer.New(byDay{oneGeneration{memstore.New()}}, add, consumer.Config{Name: "billing", Identity: byEvent, PreviousIdentity: &consumer.PreviousIdentity{Identity: byOrder}, Logger: quiet(),
			Retention: consumer.RetentionPolicy{Keep: 1e15, IDTime: identity.UUIDv7, DailyPartitions: true}})
		if !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "PreviousIdentity is set beside Retention.DailyPartitions") {
			t.Errorf("got %v", err)
		}
	})
}
