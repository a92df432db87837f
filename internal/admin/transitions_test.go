package admin

import (
	"testing"

	"github.com/semel-go/semel/store"
)

// byPerson contains the events that an operator can cause. Workers cause all other events.
var byPerson = map[RowEvent]bool{RowDiscarded: true, RowReleased: true, RowRetried: true}

func TestEveryStateCanBeLeft(t *testing.T) {
	t.Run("trap_127_by_a_worker_if_its_marker_waits_and_by_a_person_unless_it_is_an_end", func(t *testing.T) {
		for state, after := range transitions {
			worker, person, again := false, false, false
			for event, next := range after {
				if event == RowClaimed && next == store.StateInProgress {
					worker = true
				}
				person = person || byPerson[event]
				again = again || event == RowEmitted || event == RowReopened
				if !next.Known() {
					t.Errorf("%s in %s leads to %q", event, state, next)
				}
			}
			ends := state == store.StateCompleted || state == store.StateDiscarded
			if worker != (state.Outcome() == store.Waiting) || person == ends || ends != (len(after) == 0 || again) || again != ends || again && len(after) > 1 {
				t.Errorf("%s is left by a worker: %t, by a person: %t", state, worker, person)
			}
		}
	})
	t.Run("D4_every_state_is_reached", func(t *testing.T) {
		reached := map[store.RowState]bool{store.StateReceived: true} // this state is reached when a message is received
		for range transitions {
			for state, after := range transitions {
				for _, next := range after {
					reached[next] = reached[next] || reached[state]
				}
			}
		}
		for state := range transitions {
			if !reached[state] {
				t.Errorf("%s is never reached", state)
			}
		}
		if len(transitions) != len(reached) {
			t.Errorf("%v", reached)
		}
		for _, shown := range States() {
			for _, state := range shown.Stored() {
				if !reached[state] {
					t.Errorf("%s is not in the table", state)
				}
			}
		}
	})
	t.Run("trap_127_an_event_is_of_this_table_or_does_not_happen", func(t *testing.T) {
		for _, state := range append([]store.RowState{"FUTURE", "", "FAILED_TERMINAL"}, store.StateCompleted, store.StateDiscarded) {
			for event := RowEvent(0); event <= rowEvents+1; event++ {
				if state == store.StateCompleted && event == RowEmitted || state == store.StateDiscarded && event == RowReopened {
					continue
				}
				if next, legal := After(state, event); legal || next != "" {
					t.Errorf("%s in %q leads to %q", event, state, next)
				}
			}
		}
	})
}
