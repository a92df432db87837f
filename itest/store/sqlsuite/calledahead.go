package sqlsuite

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
)

// CalledAhead starts calls for a received row. The time of the first call comes from a clock that was a day ahead; the
// clock is now correct. The age of the first call is therefore unknown, and counts as longer than any window, even
// after the day has passed. If cut is true, the time until which the row waits was also too late, and the store
// shortens the wait. The function setCalled moves the date of the first call by a number of days. The function setRow
// moves all other dates of the row by a number of days.
func CalledAhead[Tx any](t *testing.T, s store.TxStore[Tx], cut bool, setCalled, setRow func(days int)) {
	t.Helper()
	receiveCalled(t, s)
	if first := startCall(t, s, nil); first.Since > time.Hour {
		t.Errorf("the first call: %+v", first)
	}
	forgets := calls.Rule{Window: 365 * 24 * time.Hour}.Forgotten
	setCalled(1)
	if cut {
		setRow(1)
	} else if again := startCall(t, s, nil); !forgets(again.Since) {
		t.Errorf("with a clock that was set back: %v ago, want longer than any window", again.Since)
	}
	if later := startCall(t, s, func() { setCalled(-1) }); !forgets(later.Since) {
		t.Errorf("a day later: %v ago, want longer than any window", later.Since)
	}
}

// receiveCalled receives the row for which CalledAhead starts calls.
func receiveCalled[Tx any](t *testing.T, s store.TxStore[Tx]) {
	t.Helper()
	marks := Marks(t, s, "shop", "called")
	marks[0].As = store.Waiting
	b, _ := Begin(t, s, store.TxOptions{}, marks)
	ending := store.Ending{Rows: []store.Row{{State: store.StateReceived, Message: &semel.Message{Body: []byte("x")}}}}
	if r := b.Commit(t.Context(), ending); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
}

// startCall claims the row, calls the function claimed, and starts a call.
func startCall[Tx any](t *testing.T, s store.TxStore[Tx], claimed func()) store.CallStarted {
	t.Helper()
	rows, err := s.(store.Inbox).Rows(t.Context(), store.RowFilter{})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	var got []store.Claimed
	for len(got) == 0 {
		o := store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Numbers: []int64{rows[0].Number}, Most: 1, Lease: time.Millisecond}
		got = must.Get(s.(store.Leases).Claim(t.Context(), o))(t)
	}
	if claimed != nil {
		claimed()
	}
	all, err := s.(store.Leases).StartCalls(t.Context(), []store.Claim{got[0].Claim}, time.Millisecond)
	if err != nil || len(all) != 1 || !all[0].Stands {
		t.Fatal(all, err)
	}
	return all[0]
}
