package contract

import (
	"errors"
	"testing"

	"github.com/semel-go/semel"
)

func TestARowBesideOthersOfItsIdentity(t *testing.T) {
	open := func(state RowState) []StoredRow { return []StoredRow{{Number: 2, State: state}} }
	stepped := func(state RowState) []StoredRow {
		return []StoredRow{{Number: 2, State: state, Steps: make([]StepDone, 1)}}
	}
	called := []StoredRow{{Number: 2, State: StateParked, CallsStarted: 1}}
	for name, c := range map[string]struct {
		marker Outcome
		own    bool
		others []StoredRow
		want   error
	}{
		"law_16_may_run_beside_one_that_is_parked":               {Parked, false, open(StateParked), nil},
		"law_16_may_run_beside_one_that_is_discarded":            {Discarded, false, open(StateDiscarded), nil},
		"law_16_may_run_where_its_own_marker_waits":              {Waiting, true, nil, nil},
		"law_12_may_not_run_where_a_row_is_completed":            {Parked, true, open(StateCompleted), semel.ErrConflict},
		"law_12_may_not_run_where_the_marker_says_applied":       {Applied, false, nil, semel.ErrConflict},
		"law_12_may_not_run_where_its_own_marker_says_applied":   {Applied, true, nil, semel.ErrConflict},
		"law_16_may_not_run_while_a_row_waits":                   {Parked, true, open(StateReceived), ErrOpen},
		"law_16_may_not_run_beside_a_state_of_a_newer_release":   {Parked, true, open("NEWER"), ErrOpen},
		"law_16_may_not_run_while_the_marker_of_another_waits":   {Waiting, false, nil, ErrOpen},
		"C11_may_not_run_after_steps_of_a_parked_row":            {Parked, true, stepped(StateParked), ErrOpen},
		"C11_may_not_run_after_steps_of_a_discarded_row":         {Parked, true, stepped(StateDiscarded), ErrOpen},
		"E3_may_not_run_after_a_call_whose_outcome_nobody_knows": {Parked, true, called, ErrOpen},
	} {
		t.Run(name, func(t *testing.T) {
			if err := MayRun(1, c.marker, c.own, c.others); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
