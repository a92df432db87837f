package consumer_test

import (
	"testing"

	"github.com/semel-go/semel/store"
)

func TestTheMarkerOfARow(t *testing.T) {
	t.Run("D4_a_row_that_ended_has_a_marker_that_says_how_and_one_that_has_not_waits", func(t *testing.T) {
		for state, want := range map[store.RowState]store.Outcome{
			store.StateReceived: store.Waiting, store.StateInProgress: store.Waiting, store.StateFailedRetryable: store.Waiting, "FAILED_TERMINAL": 0, store.StateBlocked: store.Waiting, "FUTURE": 0,
			store.StateCompleted: store.Applied, store.StateParked: store.Parked,
			store.StateDeadLettered: store.DeadLettered, store.StateDiscarded: store.Discarded,
		} {
			if got := state.Outcome(); got != want {
				t.Errorf("%s: the marker says %d, want %d", state, got, want)
			}
		}
	})
}
