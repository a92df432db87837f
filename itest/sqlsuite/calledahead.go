package sqlsuite

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/calls"
)

// CalledAhead starts a call for a received row, and again after setAhead has moved the start of
// the first one into the future, as a clock that was ahead wrote it: how long ago that was is
// unknown, and counts as longer than any window.
func CalledAhead[Tx any](t *testing.T, s contract.TxStore[Tx], setAhead func()) {
	t.Helper()
	marks := Marks(t, s, "shop", "called")
	marks[0].As = contract.Waiting
	b, _ := Begin(t, s, contract.TxOptions{}, marks)
	ending := contract.Ending{Rows: []contract.Row{{State: contract.StateReceived, Message: &semel.Message{Body: []byte("x")}}}}
	if r := b.Commit(t.Context(), ending); r.Outcome != contract.Committed {
		t.Fatalf("%+v", r)
	}
	started := func() contract.CallStarted {
		var claimed []contract.Claimed
		for len(claimed) == 0 {
			var err error
			claimed, err = s.(contract.Leases).Claim(t.Context(), contract.ClaimOptions{Consumer: "billing", Token: contract.NewToken(), Most: 1, Lease: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
		}
		all, err := s.(contract.Calls).StartCalls(t.Context(), []contract.Claim{claimed[0].Claim}, time.Millisecond)
		if err != nil || len(all) != 1 || !all[0].Stands {
			t.Fatal(all, err)
		}
		return all[0]
	}
	if first := started(); first.Since > time.Hour {
		t.Errorf("the first call: %+v", first)
	}
	setAhead()
	if again := started(); !(calls.Rule{Window: 365 * 24 * time.Hour}).Forgotten(again.Since) {
		t.Errorf("with a clock that was set back: %v ago, want longer than any window", again.Since)
	}
}
