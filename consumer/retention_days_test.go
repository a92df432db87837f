package consumer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// daily is a store with one partition of markers for each day.
type daily struct {
	*memstore.Store
	kind string
}

func (d daily) Limits() store.Limits { return store.Limits{PartitionedBy: d.kind} }

func TestMarkersByDayAreOfAStoreThatHasDays(t *testing.T) {
	with := RetentionPolicy{Keep: 24 * time.Hour, IDTime: identity.UUIDv7, DailyPartitions: true}
	without := RetentionPolicy{Keep: 24 * time.Hour, IDTime: identity.UUIDv7}
	other := RetentionPolicy{Keep: 24 * time.Hour, IDTime: identity.ULID, DailyPartitions: true}
	t.Run("H3_policy_and_store_say_the_same", func(t *testing.T) {
		for _, c := range []struct {
			store  any
			policy RetentionPolicy
			says   string // part of the expected error; empty if policy and store fit
		}{
			{daily{memstore.New(), "uuidv7"}, with, ""}, {memstore.New(), without, ""},
			{memstore.New(), with, "Dated"}, {daily{memstore.New(), ""}, with, "Dated"},
			{daily{memstore.New(), "uuidv7"}, without, "DailyPartitions is not set"}, {daily{memstore.New(), "uuidv7"}, other, "uuidv7"},
		} {
			_, err := Config{Name: "billing", Identity: identity.CloudEvents(), Retention: c.policy}.settings(needs{store: c.store}, nil)
			if (err == nil) != (c.says == "") || err != nil && (!errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%T with %+v: %v", c.store, c.policy, err)
			}
		}
	})
	t.Run("H3_ids_whose_order_is_not_their_time_are_refused", func(t *testing.T) {
		for _, p := range []RetentionPolicy{{Keep: time.Hour, DailyPartitions: true}, {IDTime: identity.ULID, DailyPartitions: true}} {
			if _, err := (Config{Name: "billing", Identity: identity.CloudEvents(), Retention: p}).settings(needs{store: daily{memstore.New(), "ulid"}}, nil); err == nil || errors.Is(err, semel.ErrUnsupported) {
				t.Errorf("%+v is taken", p)
			}
		}
	})
}
