package operate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// The consumer runs while rows are retried. The consumer applies due rows and so unblocks later rows of the
// same lane.
func TestARetryOfAllCountsRowsThatAnEarlierRowFreed(t *testing.T) {
	f := newParkedInbox(page + 4)
	f.requeueErrors = map[int64]error{}
	set := func(number int64, state store.RowState, answer error) {
		f.rows[number-1].State, f.requeueErrors[number] = state, answer
	}
	due := fmt.Errorf("row: %w", admin.ErrDueAlready)
	calls := 0
	f.beforeRequeue = func(*fakeInbox) {
		switch calls++; calls {
		case 1: // in the first page, row 2 is unblocked between the read and the retry
			set(2, store.StateReceived, semel.ErrChanged)
			set(page+1, store.StateReceived, due)
			set(page+2, store.StateInProgress, nil)
			set(page+3, store.StateCompleted, nil)
			set(page+4, store.StateDiscarded, nil)
		case 2: // the command tries row 2 a second time
			f.requeueErrors[2] = due
		}
	}
	got := carry(t, f, Order{Verb: admin.Retry, Filter: store.RowFilter{States: []store.RowState{store.StateParked}}})
	want := []string{"1 due now", "2 due now", fmt.Sprint(page+1, " due now"), fmt.Sprint(page+2, " due now"), fmt.Sprint(page+3, " done"), fmt.Sprint(page+4, " refused")}
	if got = slices.Concat(got[:2], got[page:]); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(f.acts) != page-1 {
		t.Errorf("%d acts are recorded, want one for each row but those that were freed", len(f.acts))
	}
}
