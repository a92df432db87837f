package consumer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestMessagesOlderThanTheRetention(t *testing.T) {
	// reaped returns a store from which all markers up to the current time were removed.
	reaped := func(t *testing.T) *memstore.Store {
		st := memstore.New()
		if _, err := consume(t, st, add, retentionConfig(newListSource(writtenNow("1")))); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Hour)
		if err := st.Progressed(t.Context(), "billing", []source.LaneAge{{Lane: "a"}}); err != nil { // like a run that finds no messages
			t.Fatal(err)
		}
		if _, err := st.Advance(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		if r, err := st.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 10}); err != nil || r.Markers != 1 {
			t.Fatal(r, err)
		}
		return st
	}
	old := func(id string) *semel.Message {
		m := message(id, `{}`)
		m.Origin.Written = uint32(time.Now().Add(-5 * time.Hour).Unix())
		return m
	}
	bubble(t, "H4_it_ends_as_the_policy_says", func(t *testing.T) {
		for then, want := range map[consumer.Action]semel.Counts{
			consumer.ActionPark:    {Deliveries: 2, Parked: 2},
			consumer.ActionDiscard: {Deliveries: 2, Discarded: 2},
		} {
			st := reaped(t)
			c := retentionConfig(newListSource(old("1"), old("2")))
			c.Retention.OnExpired = then
			if got, err := consume(t, st, add, c); err != nil || got != want {
				t.Errorf("%v: %+v, %v", then, got, err)
			}
		}
		c := retentionConfig(newListSource(old("1")))
		c.Retention.OnExpired = consumer.ActionHalt
		if _, err := consume(t, reaped(t), add, c); !errors.Is(err, semel.ErrHalted) {
			t.Errorf("halt: %v", err)
		}
	})
	bubble(t, "H4_it_is_retried_by_a_person", func(t *testing.T) {
		st := reaped(t)
		if _, err := consume(t, st, add, retentionConfig(newListSource(old("2")))); err != nil {
			t.Fatal(err)
		}
		rows, err := st.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "retry", Who: "me", Why: "it was never sent"}, rows[0].Seen())...); err != nil {
			t.Fatal(err)
		}
		if err := mustNew(t, st, add, retentionConfig(newListSource())).Work(t.Context()); err != nil || effect(t, st, "2") != "1" {
			t.Errorf("the effect is %q, %v", effect(t, st, "2"), err)
		}
	})
	bubble(t, "H4_the_id_tells_before_the_record_does", func(t *testing.T) {
		st := reaped(t)
		ms := fmt.Sprintf("%012x", time.Now().UnixMilli())
		young, next := ms[:8]+"-"+ms[8:]+"-7000-8000-000000000000", "7f000000-0000-7000-8000-000000000000" // next has a time in the far future
		c := retentionConfig(newListSource(old("00000000-79b0-7cc3-98c4-dc0c0c07398f"), old(young), old(next)))
		c.Retention.IDTime = identity.UUIDv7
		if got, err := consume(t, st, add, c); err != nil || got.Parked != 2 || got.Applied != 1 || effect(t, st, young) != "1" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	bubble(t, "H4_B4_a_version_is_told_by_its_stream_and_not_by_its_age", func(t *testing.T) {
		st := reaped(t)
		first := versioned("a", 1)
		first.Origin.Written = old("").Origin.Written
		c := guards(newListSource(first))
		c.Retention.Keep = time.Hour
		if got, err := consume(t, st, follows, c); err != nil || got.Applied != 1 || got.Parked != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	bubble(t, "C13_in_a_transaction_of_the_users_it_is_an_error", func(t *testing.T) {
		st := reaped(t)
		c := mustNew(t, st, add, retentionConfig(newListSource()))
		b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Rollback(t.Context())
		if v, err := c.TryMark(t.Context(), b.Tx(store.All), old("7")); !errors.Is(err, semel.ErrOld) || v.Kind == store.Fresh {
			t.Errorf("TryMark: %v, %v", v, err)
		}
		if _, err := c.Accept(t.Context(), b.Tx(store.All), old("8")); !errors.Is(err, semel.ErrOld) {
			t.Errorf("Accept: %v", err)
		}
	})
	bubble(t, "D2_it_is_not_received_either", func(t *testing.T) {
		st := reaped(t)
		c := retentionConfig(newListSource(old("7")))
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		if got, err := consume(t, st, add, c); err != nil || got.Parked != 1 || got.Received != 0 || effect(t, st, "7") != "" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	bubble(t, "case_7_what_comes_behind_it_waits_where_it_does", func(t *testing.T) {
		st := reaped(t)
		first, second := old("7"), message("8", `{}`)
		second.Origin.Written = uint32(time.Now().Unix())
		first.Key, second.Key = []byte("k"), []byte("k")
		c := retentionConfig(newListSource(first, second))
		c.Lanes, c.OnParked, c.IdleExit = consumer.LanesKey, consumer.OnParkedBlock, time.Second
		got, err := consume(t, st, add, c)
		if got.Parked != 1 || got.Waiting != 1 || effect(t, st, "8") != "" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	bubble(t, "H4_it_does_not_wait_in_its_line_to_run_again", func(t *testing.T) {
		st := reaped(t)
		for _, id := range []string{"7", "1"} { // message 7 is in the queue before the duplicate of the applied message 1
			m := old(id)
			m.Key = []byte("k")
			c := retentionConfig(newListSource(m))
			c.Lanes, c.OnParked, c.IdleExit = consumer.LanesKey, consumer.OnParkedBlock, time.Second
			if got, err := consume(t, st, add, c); err != nil || got.Parked != 1 || got.Waiting != 0 {
				t.Errorf("%s: %+v, %v", id, got, err)
			}
		}
		if r := row(t, st, "1"); r.State != store.StateParked || r.Reason != reasonname.Expired {
			t.Errorf("it is %s, %s", r.State, r.Reason)
		}
	})
}

func TestRetentionsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		policy consumer.RetentionPolicy
		want   string
	}{
		"H1_seconds":             {consumer.RetentionPolicy{Keep: 30}, "Retention.Keep: is 30ns"},
		"H1_negative":            {consumer.RetentionPolicy{Keep: -time.Hour}, "Retention.Keep"},
		"D7_bodies_for_longer":   {consumer.RetentionPolicy{Keep: time.Hour, Bodies: time.Hour}, "Retention.Bodies"},
		"H4_for_ever_and_an_end": {consumer.RetentionPolicy{OnExpired: consumer.ActionDiscard}, "set Keep"},
		"H4_an_unknown_end":      {consumer.RetentionPolicy{Keep: time.Hour, OnExpired: consumer.ActionRetry}, "Retention.OnExpired"},
		"H4_an_unknown_kind":     {consumer.RetentionPolicy{Keep: time.Hour, IDTime: 9}, "IDTime(9)"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := config(newListSource())
			policy.Retention = c.policy
			if _, err := consumer.New(memstore.New(), add, policy); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("New says %v, not %q", err, c.want)
			}
		})
	}
	t.Run("H1_a_store_that_keeps_everything", func(t *testing.T) {
		if _, err := consumer.New(plain(memstore.New()), add, retentionConfig(newListSource())); !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
	})
}
