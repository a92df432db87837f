package consumer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// reapedOnce returns a store from which the marker of message "1" was removed after a retention of an hour.
// The second result is the time at which the message was written.
func reapedOnce(t *testing.T) (*memstore.Store, time.Time) {
	t.Helper()
	st, source, first := memstore.New(), newBroker(), time.Now()
	run := start(t, mustNew(t, st, add, retentionConfig(source)))
	source.send("1", first)
	pass(70 * time.Minute)
	if v := outcome(t, st, "1"); v.Kind != store.Fresh {
		t.Fatalf("the marker still exists: %v", v)
	}
	run.stop()
	if err := run.wait(); err != nil {
		t.Fatal(err)
	}
	return st, first
}

func TestMarkersRemovedUnderAnEarlierPolicy(t *testing.T) {
	for name, bodies := range map[string]time.Duration{"H4_for_a_policy_that_keeps_all": 0, "H4_for_one_that_removes_bodies": time.Hour} {
		bubble(t, name, func(t *testing.T) {
			st, first := reapedOnce(t)
			src := newBroker()
			c := config(src)
			c.Retention.Bodies = bodies
			run := start(t, mustNew(t, st, add, c))
			src.send("1", first)
			src.send("2", time.Now())
			pass(time.Second)
			if effect(t, st, "1") != "1" || effect(t, st, "2") != "1" {
				t.Errorf("effects %s, %s", effect(t, st, "1"), effect(t, st, "2"))
			}
			run.stop()
			if err := run.wait(); err != nil {
				t.Error(err)
			}
			kept, err := st.Retentions(t.Context(), "billing")
			if err != nil || len(kept) != 1 || kept[0].Keep != 0 {
				t.Errorf("the store has %+v, %v", kept, err)
			}
		})
	}
	bubble(t, "C13_H4_in_a_transaction_of_the_users", func(t *testing.T) {
		st, first := reapedOnce(t)
		c := config(nil)
		c.Source = nil
		late := message("1", `{}`)
		late.Origin.Written = uint32(first.Unix())
		for try := range 2 { // the second call must not ask the store
			b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := mustNew(t, st, add, c).TryMark(t.Context(), b.Tx(store.All), late); !errors.Is(err, semel.ErrOld) {
				t.Errorf("try %d: %v", try+1, err)
			}
			b.Rollback(t.Context())
		}
	})
	bubble(t, "H4_by_calls_of_process", func(t *testing.T) {
		st, first := reapedOnce(t)
		c := config(nil)
		c.Source = nil
		late := message("1", `{}`)
		late.Origin.Written = uint32(first.Unix())
		billing := mustNew(t, st, add, c)
		d, err := billing.Process(t.Context(), late)
		if err != nil || d.Ending != source.EndParked || d.Reason != reasonname.Expired {
			t.Errorf("it is %+v, %v", d, err)
		}
		if err := billing.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestH2AMessageWithoutAnyTime(t *testing.T) {
	bubble(t, "H2_is_set_aside_from_the_first_on", func(t *testing.T) {
		store, source := memstore.New(), newBroker()
		run := start(t, mustNew(t, store, add, retentionConfig(source)))
		source.send("none", time.Time{})
		source.send("some", time.Now())
		pass(time.Second)
		if effect(t, store, "none") != "" || effect(t, store, "some") != "1" {
			t.Errorf("effects %q, %q", effect(t, store, "none"), effect(t, store, "some"))
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "H2_is_taken_where_all_is_kept", func(t *testing.T) {
		store, source := memstore.New(), newBroker()
		run := start(t, mustNew(t, store, add, config(source)))
		source.send("none", time.Time{})
		pass(time.Second)
		if effect(t, store, "none") != "1" {
			t.Errorf("the effect is %q", effect(t, store, "none"))
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}
