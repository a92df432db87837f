package consumer_test

import (
	"testing"

	"github.com/semel-go/semel/contract"
)

func TestWhatAMarkerSaysOfARow(t *testing.T) {
	t.Run("D4_a_row_that_ended_has_a_marker_that_says_how_and_one_that_has_not_waits", func(t *testing.T) {
		for state, want := range map[contract.RowState]contract.Outcome{
			contract.StateReceived: contract.Waiting, contract.StateInProgress: contract.Waiting, contract.StateFailedRetryable: contract.Waiting, "FAILED_TERMINAL": 0, contract.StateBlocked: contract.Waiting, "FUTURE": 0,
			contract.StateCompleted: contract.Applied, contract.StateParked: contract.Parked,
			contract.StateDeadLettered: contract.DeadLettered, contract.StateDiscarded: contract.Discarded,
		} {
			if got := state.Outcome(); got != want {
				t.Errorf("%s: the marker says %d, want %d", state, got, want)
			}
		}
	})
}
