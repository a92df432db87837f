package sqlform

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/newer"
)

func TestNumbersAreReadByName(t *testing.T) {
	print := semel.Fingerprint{Version: 1, Sum: [16]byte{1}}
	t.Run("trap_T104_each_outcome_is_its_verdict_and_any_other_number_none", func(t *testing.T) {
		known := map[int64]semel.Outcome{1: semel.Applied, 2: semel.Waiting, 3: semel.Parked, 4: semel.DeadLettered, 5: semel.Discarded}
		numbers := []int64{math.MinInt64, -1, 256, 257, 261, math.MaxInt64}
		for n := range int64(256) {
			numbers = append(numbers, n)
		}
		for _, n := range numbers {
			v, ok := Marker{Outcome: n}.Verdict(print)
			want, is := known[n]
			if o, named := Outcome(n); ok != is || is && v != contract.Found(want) || named != ok || o != want {
				t.Errorf("%d is %v, %t; outcome %v, %t", n, v, ok, o, named)
			}
		}
	})
	t.Run("trap_T104_an_unknown_number_is_no_conflict_either", func(t *testing.T) {
		for _, m := range []Marker{{Outcome: 6, Version: 1}, {Outcome: 1, Version: 256}, {Outcome: 1, Version: -1}} {
			if v, ok := m.Verdict(print); ok {
				t.Errorf("%+v is %v", m, v)
			}
		}
		if v, ok := (Marker{Outcome: 1, Version: 1, Known: true}).Verdict(print); !ok || v != (contract.Verdict{Kind: contract.Conflict, Known: true}) {
			t.Errorf("another content is %v, %t", v, ok)
		}
	})
	t.Run("trap_T104_the_error_names_all_marks_and_the_first_number", func(t *testing.T) {
		err := Marker{Outcome: 7}.Newer(Marker{Outcome: 6}.Newer(nil, "semel_markers", 4), "semel_markers", 2)
		const says = "semel_markers has the outcome 6, written by a newer release: leave its message to that release, or run it here, too"
		if !slices.Equal(err.Marks, []int{2, 4}) || err.Error() != says || !errors.Is(err, newer.Err) {
			t.Errorf("%v of %v", err, err.Marks)
		}
	})
	t.Run("trap_T104_states_are_the_nine_that_there_are", func(t *testing.T) {
		for _, s := range []contract.RowState{contract.StateReceived, contract.StateInProgress, contract.StateCompleted, contract.StateFailedRetryable, contract.StateFailedTerminal,
			contract.StateParked, contract.StateBlocked, contract.StateDeadLettered, contract.StateDiscarded} {
			if got, err := State(string(s), "semel_inbox"); err != nil || got != s {
				t.Errorf("%s is %s, %v", s, got, err)
			}
		}
		for _, name := range []string{"", "ASLEEP", "parked"} {
			if got, err := State(name, "semel_inbox"); !errors.Is(err, newer.Err) || string(got) != name {
				t.Errorf("%q is %q, %v", name, got, err)
			}
		}
	})
}
