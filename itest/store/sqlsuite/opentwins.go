package sqlsuite

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// OpenTwins makes two rows of one identity due, a state that an earlier release could leave behind. The marker belongs
// to the first row. A process that claims the second row must not start a batch or a call for this row, and must not
// end the row. The function due makes a row due with SQL.
func OpenTwins[Tx any](t *testing.T, i storetest.Instance[Tx], due func(number int64)) {
	ctx := t.Context()
	st := i.Store.(interface {
		store.Inbox
		store.Leases
		store.Leases
		admin.Requeuer
	})
	marks, rows := parkedTwins(t, i.Store), twinRows(t, st)
	must.OK(t, errors.Join(st.Requeue(ctx, store.Act{Verb: "retry", Who: "test"}, rows[0].Seen())...))
	due(rows[1].Number)
	claims, err := st.Claim(ctx, store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: time.Hour})
	if err != nil || len(claims) != 2 {
		t.Fatalf("claimed %+v, %v", claims, err)
	}
	var endings [2]store.ClaimEnding
	for _, c := range claims {
		n := int(c.Number - rows[0].Number)
		marks[n].As, marks[n].Claim = store.Applied, c.Claim
		endings[n] = store.ClaimEnding{Claim: c.Claim, Event: store.RowCompleted, Ran: true}
	}
	b, v := Begin[Tx](t, i.Store, store.TxOptions{}, marks)
	b.Rollback(ctx)
	if v[0].Kind != store.Fresh || v[1].Kind != store.ClaimLost {
		t.Errorf("the batches of the claims: %v, want only the owner's", v)
	}
	if calls, err := st.StartCalls(ctx, []store.Claim{marks[1].Claim}, time.Hour); err != nil || calls[0].Stands {
		t.Errorf("a call of the other row begins: %+v, %v", calls, err)
	}
	for _, e := range [][]store.ClaimEnding{endings[1:], endings[:]} {
		b, _ := Begin[Tx](t, i.Store, store.TxOptions{}, marks[:1])
		if r := b.Commit(ctx, store.Ending{Claims: e}); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
			t.Errorf("%d claims end with a batch, one of the other row: %+v", len(e), r)
		}
	}
	if lost, err := st.End(ctx, endings[1:]); err != nil || len(lost) != 1 {
		t.Errorf("the other row's claim ends: lost %v, %v", lost, err)
	}
	b, _ = Begin[Tx](t, i.Store, store.TxOptions{}, marks[:1])
	if r := b.Commit(ctx, store.Ending{Claims: endings[:1]}); r.Outcome != store.Committed {
		t.Errorf("the owner's claim ends: %+v", r)
	}
	if rows = twinRows(t, st); rows[0].State != store.StateCompleted {
		t.Errorf("the owner is %s", rows[0].State)
	}
}

// parkedTwins parks two contents of one identity, and returns the markers to write for both contents.
func parkedTwins[Tx any](t testing.TB, s store.TxStore[Tx]) []store.Mark {
	t.Helper()
	marks := Marks(t, s, "shop", "a", "a")
	for n := range marks {
		marks[n].As, marks[n].Fingerprint = store.Parked, semel.Fingerprint{Version: 1, Sum: [16]byte{byte(n)}}
		b, _ := Begin(t, s, store.TxOptions{}, marks[n:n+1])
		row := store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Conflict: n == 1, Message: &semel.Message{Body: []byte{byte(n)}}}
		if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{row}}); r.Outcome != store.Committed {
			t.Fatalf("%+v", r)
		}
	}
	return marks
}

func twinRows(t testing.TB, s store.Inbox) []store.StoredRow {
	t.Helper()
	all, err := s.Rows(t.Context(), store.RowFilter{})
	if err != nil || len(all) != 2 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	return all
}
