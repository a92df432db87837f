package semel_test

import (
	"testing"

	"github.com/semel-go/semel"
)

func TestWhatAMarkerSaysOfARow(t *testing.T) {
	t.Run("D4_a_row_that_ended_has_a_marker_that_says_how_and_any_other_waits", func(t *testing.T) {
		for state, want := range map[semel.RowState]semel.Outcome{
			semel.StateReceived: semel.Waiting, semel.StateInProgress: semel.Waiting, semel.StateFailedRetryable: semel.Waiting, semel.StateBlocked: semel.Waiting,
			semel.StateCompleted: semel.Applied, semel.StateParked: semel.Parked, semel.StateFailedTerminal: semel.Parked,
			semel.StateDeadLettered: semel.DeadLettered, semel.StateDiscarded: semel.Discarded,
		} {
			if got := state.Outcome(); got != want {
				t.Errorf("%s: the marker says %d, want %d", state, got, want)
			}
		}
	})
}
