package measure_test

import (
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/measure"
)

// kinds are the events about messages that end without an effect, by the value of Aside.How.
var kinds = map[string]semel.EventKind{"parked": semel.EventParked, "dead_lettered": semel.EventDeadLettered, "discarded": semel.EventDiscarded, "conflict": semel.EventConflict}

// noEndings are the reasons of messages that wait, are released, or were changed by an operator.
var noEndings = []semel.Reason{reasonname.Behind, reasonname.Suppressed, reasonname.Erased, reasonname.Busy, reasonname.Newer, semel.ReasonPaused}

func TestEndingsWithoutAnEffect(t *testing.T) {
	all := measure.Asides()
	t.Run("K4_whatever_is_told_is_one_of_them", func(t *testing.T) {
		for how, kind := range kinds {
			told := []semel.Reason{"account 17"}
			for _, r := range reasons(t) {
				told = append(told, r)
			}
			for _, r := range told {
				if a, ended := measure.AsideOf(semel.Event{Kind: kind, Reason: r}); !ended || a.How != how || !slices.Contains(all, a) {
					t.Errorf("%s for %q is %+v (%t), and does not begin at 0", kind, r, a, ended)
				}
			}
		}
		if a, ended := measure.AsideOf(semel.Event{Kind: eventkind.Retry, Reason: semel.ReasonPermanent}); ended {
			t.Errorf("a retry is %+v", a)
		}
	})
	t.Run("K4_each_is_told_as_what_it_is_and_is_there_once", func(t *testing.T) {
		seen := map[measure.Aside]bool{}
		for _, a := range all {
			reason := semel.Reason(a.Reason)
			if a.Reason == "none" {
				reason = reasonname.None
			}
			if got, _ := measure.AsideOf(semel.Event{Kind: kinds[a.How], Reason: reason}); got != a || seen[a] {
				t.Errorf("%+v is reported as %+v, or is listed twice", a, got)
			}
			seen[a] = true
		}
	})
	t.Run("K4_each_reason_is_one_of_an_ending_or_of_none", func(t *testing.T) {
		for name, r := range reasons(t) {
			ends := slices.ContainsFunc(all, func(a measure.Aside) bool { return a.Reason == measure.ReasonClass(r) })
			if ends == slices.Contains(noEndings, r) {
				t.Errorf("%s: %t", name, ends)
			}
		}
	})
	t.Run("trap_86_a_reason_of_Semels_that_a_handler_borrows_is_a_handlers", func(t *testing.T) {
		if a, _ := measure.AsideOf(semel.Event{Kind: semel.EventDiscarded, Reason: semel.ReasonGap}); a.Reason != "other" {
			t.Errorf("it is %+v", a)
		}
	})
}
