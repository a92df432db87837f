package admin

import (
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestARowBesideOthersOfItsIdentity(t *testing.T) {
	open := func(state store.RowState) []store.StoredRow { return []store.StoredRow{{Number: 2, State: state}} }
	stepped := func(state store.RowState) []store.StoredRow {
		return []store.StoredRow{{Number: 2, State: state, Steps: make([]store.StepDone, 1)}}
	}
	called := []store.StoredRow{{Number: 2, State: store.StateParked, CallsStarted: 1}}
	for name, c := range map[string]struct {
		marker store.Outcome
		own    bool
		others []store.StoredRow
		want   error
	}{
		"law_16_may_run_beside_one_that_is_parked":               {store.Parked, false, open(store.StateParked), nil},
		"law_16_may_run_beside_one_that_is_discarded":            {store.Discarded, false, open(store.StateDiscarded), nil},
		"law_16_may_run_where_its_own_marker_waits":              {store.Waiting, true, nil, nil},
		"law_12_may_not_run_where_a_row_is_completed":            {store.Parked, true, open(store.StateCompleted), semel.ErrConflict},
		"law_12_may_not_run_where_the_marker_says_applied":       {store.Applied, false, nil, semel.ErrConflict},
		"law_12_may_not_run_where_its_own_marker_says_applied":   {store.Applied, true, nil, semel.ErrConflict},
		"law_16_may_not_run_while_a_row_waits":                   {store.Parked, true, open(store.StateReceived), ErrOpen},
		"law_16_may_not_run_beside_a_state_of_a_newer_release":   {store.Parked, true, open("NEWER"), ErrOpen},
		"law_16_may_not_run_while_the_marker_of_another_waits":   {store.Waiting, false, nil, ErrOpen},
		"C11_may_not_run_after_steps_of_a_parked_row":            {store.Parked, true, stepped(store.StateParked), ErrOpen},
		"C11_may_not_run_after_steps_of_a_discarded_row":         {store.Parked, true, stepped(store.StateDiscarded), ErrOpen},
		"E3_may_not_run_after_a_call_whose_outcome_nobody_knows": {store.Parked, true, called, ErrOpen},
	} {
		t.Run(name, func(t *testing.T) {
			if err := MayRun(1, c.marker, c.own, c.others); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
