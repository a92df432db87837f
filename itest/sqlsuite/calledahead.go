package sqlsuite

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/calls"
)

// CalledAhead starts calls for a received row, the first of which was dated a day ahead by a
// clock that is right again: how long ago it was is unknown, and counts as longer than any window,
// also when that day has passed. With cut the row waits until then, too, and its wait is cut.
// setCalled moves the date of the first call by so many days, and setRow the others of the row.
func CalledAhead[Tx any](t *testing.T, s contract.TxStore[Tx], cut bool, setCalled, setRow func(days int)) {
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

// receiveCalled receives the row for which CalledAhead calls.
func receiveCalled[Tx any](t *testing.T, s contract.TxStore[Tx]) {
	t.Helper()
	marks := Marks(t, s, "shop", "called")
	marks[0].As = contract.Waiting
	b, _ := Begin(t, s, contract.TxOptions{}, marks)
	ending := contract.Ending{Rows: []contract.Row{{State: contract.StateReceived, Message: &semel.Message{Body: []byte("x")}}}}
	if r := b.Commit(t.Context(), ending); r.Outcome != contract.Committed {
		t.Fatalf("%+v", r)
	}
}

// startCall claims the row, has something happen, and starts a call.
func startCall[Tx any](t *testing.T, s contract.TxStore[Tx], claimed func()) contract.CallStarted {
	t.Helper()
	rows, err := s.(contract.Inbox).Rows(t.Context(), contract.RowFilter{})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	var got []contract.Claimed
	for len(got) == 0 {
		o := contract.ClaimOptions{Consumer: "billing", Token: contract.NewToken(), Numbers: []int64{rows[0].Number}, Most: 1, Lease: time.Millisecond}
		if got, err = s.(contract.Leases).Claim(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if claimed != nil {
		claimed()
	}
	all, err := s.(contract.Calls).StartCalls(t.Context(), []contract.Claim{got[0].Claim}, time.Millisecond)
	if err != nil || len(all) != 1 || !all[0].Stands {
		t.Fatal(all, err)
	}
	return all[0]
}
