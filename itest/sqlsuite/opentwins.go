package sqlsuite

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/storetest"
)

// OpenTwins has two rows of one identity be due, as an earlier release could leave them, of which
// the first has the marker: no claim of the other begins a batch or a call, or ends. due makes a
// row due by hand.
func OpenTwins[Tx any](t *testing.T, i storetest.Instance[Tx], due func(number int64)) {
	ctx := t.Context()
	store := i.Store.(interface {
		contract.Inbox
		contract.Leases
		contract.Calls
		contract.Requeuer
	})
	marks, rows := parkedTwins(t, i.Store), twinRows(t, store)
	if err := errors.Join(store.Requeue(ctx, contract.Act{Verb: "retry", Who: "test"}, rows[0].Seen())...); err != nil {
		t.Fatal(err)
	}
	due(rows[1].Number)
	claims, err := store.Claim(ctx, contract.ClaimOptions{Consumer: "billing", Token: contract.NewToken(), Most: 10, Lease: time.Hour})
	if err != nil || len(claims) != 2 {
		t.Fatalf("claimed %+v, %v", claims, err)
	}
	var endings [2]contract.ClaimEnding
	for _, c := range claims {
		n := int(c.Number - rows[0].Number)
		marks[n].As, marks[n].Claim = contract.Applied, c.Claim
		endings[n] = contract.ClaimEnding{Claim: c.Claim, Event: contract.RowCompleted, Ran: true}
	}
	b, v := Begin[Tx](t, i.Store, contract.TxOptions{}, marks)
	b.Rollback(ctx)
	if v[0].Kind != contract.Fresh || v[1].Kind != contract.ClaimLost {
		t.Errorf("the batches of the claims: %v, want only the owner's", v)
	}
	if calls, err := store.StartCalls(ctx, []contract.Claim{marks[1].Claim}, time.Hour); err != nil || calls[0].Stands {
		t.Errorf("a call of the other row begins: %+v, %v", calls, err)
	}
	for _, e := range [][]contract.ClaimEnding{endings[1:], endings[:]} {
		b, _ := Begin[Tx](t, i.Store, contract.TxOptions{}, marks[:1])
		if r := b.Commit(ctx, contract.Ending{Claims: e}); r.Outcome != contract.NotCommitted || r.Class != contract.ClassClaimLost {
			t.Errorf("%d claims end with a batch, one of the other row: %+v", len(e), r)
		}
	}
	if lost, err := store.End(ctx, endings[1:]); err != nil || len(lost) != 1 {
		t.Errorf("the other row's claim ends: lost %v, %v", lost, err)
	}
	b, _ = Begin[Tx](t, i.Store, contract.TxOptions{}, marks[:1])
	if r := b.Commit(ctx, contract.Ending{Claims: endings[:1]}); r.Outcome != contract.Committed {
		t.Errorf("the owner's claim ends: %+v", r)
	}
	if rows = twinRows(t, store); rows[0].State != contract.StateCompleted {
		t.Errorf("the owner is %s", rows[0].State)
	}
}

// parkedTwins parks a content and another one of its identity, and returns their marks.
func parkedTwins[Tx any](t testing.TB, s contract.TxStore[Tx]) []contract.Mark {
	t.Helper()
	marks := Marks(t, s, "shop", "a", "a")
	for n := range marks {
		marks[n].As, marks[n].Fingerprint = contract.Parked, semel.Fingerprint{Version: 1, Sum: [16]byte{byte(n)}}
		b, _ := Begin(t, s, contract.TxOptions{}, marks[n:n+1])
		row := contract.Row{State: contract.StateParked, Reason: semel.ReasonPermanent, Conflict: n == 1, Message: &semel.Message{Body: []byte{byte(n)}}}
		if r := b.Commit(t.Context(), contract.Ending{Rows: []contract.Row{row}}); r.Outcome != contract.Committed {
			t.Fatalf("%+v", r)
		}
	}
	return marks
}

func twinRows(t testing.TB, s contract.Inbox) []contract.StoredRow {
	t.Helper()
	all, err := s.Rows(t.Context(), contract.RowFilter{})
	if err != nil || len(all) != 2 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	return all
}
