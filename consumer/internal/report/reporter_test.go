package report

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
)

func TestSinceWhenAStoreIsDown(t *testing.T) {
	// passes waits for a second and returns the current time.
	passes := func() time.Time { <-time.After(time.Second); return time.Now() }
	bubbled := func(name string, f func(t *testing.T, n *Reporter)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, &Reporter{ready: map[string]string{}}) })
		})
	}
	bubbled("K8_since_the_first_try_however_often_it_is_tried", func(t *testing.T, n *Reporter) {
		began := passes()
		n.SetReady("store", "connection refused")
		passes()
		n.SetReady("store", "no space left")
		if since, why := n.StoreDown(); !since.Equal(began) || why != "store: no space left" {
			t.Errorf("since %v, not %v: %s", since, began, why)
		}
		n.SetReady("store", "")
		if since, why := n.StoreDown(); !since.IsZero() || why != "" {
			t.Errorf("it works: %v, %s", since, why)
		}
		again := passes()
		n.SetReady("store", "connection refused")
		if since, _ := n.StoreDown(); !since.Equal(again) {
			t.Errorf("the second outage is one since %v", since)
		}
	})
	for _, part := range []string{"store", "inbox", partKeys} {
		for _, other := range []string{"store", "inbox", partKeys} {
			if part == other {
				continue
			}
			bubbled("K8_of_two_parts_the_one_that_has_not_worked_for_longer_"+part+"_"+other, func(t *testing.T, n *Reporter) {
				began := passes()
				n.SetReady(part, "the first")
				later := passes()
				n.SetReady(other, "the second")
				if since, why := n.StoreDown(); !since.Equal(began) || why != part+": the first" {
					t.Errorf("since %v, not %v: %s", since, began, why)
				}
				n.SetReady(part, "")
				if since, why := n.StoreDown(); !since.Equal(later) || why != other+": the second" {
					t.Errorf("since %v, not %v: %s", since, later, why)
				}
			})
		}
	}
	bubbled("K8_what_is_no_store_is_none", func(t *testing.T, n *Reporter) {
		for _, part := range []string{"source", "broker", "handler", partFetch} {
			n.SetReady(part, "it does not work")
		}
		if since, why := n.StoreDown(); !since.IsZero() {
			t.Errorf("%v, %s", since, why)
		}
	})
	bubbled("K8_the_store_of_keys_works_when_the_last_end_of_a_call_is_recorded", func(t *testing.T, n *Reporter) {
		began := passes()
		if !n.endRefused(true, "away") || n.endRefused(true, "away") {
			t.Error("it was not logged")
		}
		if n.endOver() {
			t.Error("one of two ends is counted as over")
		}
		if since, why := n.StoreDown(); !since.Equal(began) || why != "keys: away" {
			t.Errorf("since %v: %s", since, why)
		}
		if !n.endOver() {
			t.Error("both are recorded")
		}
		if ready, why := n.State(); !ready {
			t.Error(why)
		}
	})
}

// events are the events that an observer got.
type events []semel.Event

func (e *events) Observe(heard semel.Event) { *e = append(*e, heard) }

func TestAConflictIsNoOtherFailure(t *testing.T) {
	t.Run("K4_whatever_its_message_failed_of_before_its_reason_is_that_it_is_one", func(t *testing.T) {
		for before, want := range map[semel.Reason]semel.Reason{
			reasonname.None: semel.ReasonConflict, semel.ReasonExhausted: semel.ReasonConflict, "account 17": semel.ReasonConflict, reasonname.FormerConflict: reasonname.FormerConflict,
		} {
			var heard events
			n := &Reporter{consumer: "billing", observers: []semel.Observer{&heard}, logger: slog.New(slog.DiscardHandler)}
			n.Ended(&machine.Settlement{Item: &machine.Item{}, Ending: source.EndConflict, Reason: before}, nil)
			if len(heard) != 1 || heard[0].Reason != want {
				t.Errorf("after %q: %+v", before, heard)
			}
		}
	})
}
