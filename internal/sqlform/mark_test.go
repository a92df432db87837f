package sqlform

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/newer"
	"github.com/semel-go/semel/store"
)

func TestStoredOutcomesAndStates(t *testing.T) {
	print := semel.Fingerprint{Version: 1, Sum: [16]byte{1}}
	t.Run("trap_T104_each_outcome_is_its_verdict_and_any_other_number_none", func(t *testing.T) {
		known := map[int64]store.Outcome{1: store.Applied, 2: store.Waiting, 3: store.Parked, 4: store.DeadLettered, 5: store.Discarded}
		numbers := []int64{math.MinInt64, -1, 256, 257, 261, math.MaxInt64}
		for n := range int64(256) {
			numbers = append(numbers, n)
		}
		for _, n := range numbers {
			v := Marker{Outcome: n}.Verdict(Crypt{}, &Mark{Mark: &store.Mark{Fingerprint: print}})
			if want, is := known[n]; is != v.Already(want) || is == (v.Kind == store.Newer) || int64(v.Was) != n {
				t.Errorf("%d is %v", n, v)
			}
		}
	})
	t.Run("trap_T104_an_unknown_number_is_no_conflict_either", func(t *testing.T) {
		for _, m := range []Marker{{Outcome: 6, Version: 1}, {Outcome: 1, Version: 256}, {Outcome: 1, Version: -1}} {
			if v := m.Verdict(Crypt{}, &Mark{Mark: &store.Mark{Fingerprint: print}}); v.Kind != store.Newer {
				t.Errorf("%+v is %v", m, v)
			}
		}
		if v := (Marker{Outcome: 1, Version: 1, Known: true}).Verdict(Crypt{}, &Mark{Mark: &store.Mark{Fingerprint: print}}); v != (store.Verdict{Kind: store.Conflict, Known: true}) {
			t.Errorf("another content is %v", v)
		}
	})
	t.Run("trap_T104_the_error_names_the_number_and_the_table", func(t *testing.T) {
		err := NewerError(6, "semel_markers")
		const says = "semel_markers has the outcome 6, written by a newer release: leave its message to that release, or run that release here"
		if err.Error() != says || !errors.Is(err, newer.Err) {
			t.Error(err)
		}
	})
	t.Run("trap_T104_a_row_is_acted_on_where_its_state_and_its_marker_are_understood", func(t *testing.T) {
		for _, c := range []struct {
			state   string
			outcome int64
			says    string // part of the expected error; empty if changes are allowed
		}{
			{"PARKED", 3, ""}, {"COMPLETED", 1, ""},
			{"FUTURE", 3, `semel_inbox has the state "FUTURE"`}, {"PARKED", 9, "semel_markers has the outcome 9"},
			{"FUTURE", 9, `semel_inbox has the state "FUTURE"`}, {"PARKED", -3, "the outcome -3"},
		} {
			state, err := Acted{7, c.state, c.outcome, "semel_inbox", "semel_markers"}.Understood()
			refused := errors.Is(err, semel.ErrState) && errors.Is(err, newer.Err) && strings.Contains(err.Error(), "row 7: ") && strings.Contains(err.Error(), c.says)
			if string(state) != c.state || refused != (c.says != "") || err != nil && !refused {
				t.Errorf("%+v is %s, %v", c, state, err)
			}
		}
	})
	t.Run("trap_T104_states_are_those_that_this_release_writes", func(t *testing.T) {
		for _, s := range []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateCompleted, store.StateParked, store.StateDeadLettered, store.StateDiscarded} {
			if got, err := State(string(s), "semel_inbox"); err != nil || got != s {
				t.Errorf("%s is %s, %v", s, got, err)
			}
		}
		for _, name := range []string{"", "ASLEEP", "parked", "FAILED_TERMINAL"} {
			if got, err := State(name, "semel_inbox"); !errors.Is(err, newer.Err) || string(got) != name {
				t.Errorf("%q is %q, %v", name, got, err)
			}
		}
	})
}
