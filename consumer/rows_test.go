package consumer_test

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

func TestWhatAMarkerSaysOfARow(t *testing.T) {
	t.Run("D4_a_row_that_ended_has_a_marker_that_says_how_and_any_other_waits", func(t *testing.T) {
		for state, want := range map[contract.RowState]semel.Outcome{
			"RECEIVED": 0, "IN_PROGRESS": 0, "FAILED_RETRYABLE": 0, "FAILED_TERMINAL": 0, "BLOCKED": 0, "FUTURE": 0,
			contract.StateCompleted: semel.Applied, contract.StateParked: semel.Parked,
			contract.StateDeadLettered: semel.DeadLettered, contract.StateDiscarded: semel.Discarded,
		} {
			if got := state.Outcome(); got != want {
				t.Errorf("%s: the marker says %d, want %d", state, got, want)
			}
		}
	})
}
