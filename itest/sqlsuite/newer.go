package sqlsuite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/newer"
)

// NewerStore is what a SQL store answers what a newer release wrote with.
type NewerStore[Tx any] interface {
	contract.TxStore[Tx]
	contract.Inbox
	contract.Requeuer
	contract.MarkerReader
}

// UnknownOutcomes are numbers that this release gives no meaning.
var UnknownOutcomes = []int{6, 257, 0, -3}

// NewerRelease is a store with a parked message "a" and an applied one "b", whose
// markers are changed behind its back, as an administrator sees what a newer
// release writes. What can be written through a store is asked in storetest.
type NewerRelease[Tx any] struct {
	store NewerStore[Tx]
	exec  func(t testing.TB, statement string)
	scope int64
}

// Newer writes both messages. exec runs a statement that names the table of
// markers in.semel_markers; that table must take any outcome.
func Newer[Tx any](t testing.TB, store NewerStore[Tx], exec func(t testing.TB, statement string)) *NewerRelease[Tx] {
	t.Helper()
	scope, err := store.Scope(t.Context(), "billing", "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &NewerRelease[Tx]{store, exec, scope}
	b, _ := Begin[Tx](t, store, contract.TxOptions{}, []contract.Mark{w.mark("a", contract.Parked), w.mark("b", contract.Applied)})
	row := contract.Row{Mark: 0, State: contract.StateParked, Message: &semel.Message{}}
	if r := b.Commit(t.Context(), contract.Ending{Rows: []contract.Row{row}}); r.Outcome != contract.Committed {
		t.Fatalf("%+v", r)
	}
	return w
}

func (w *NewerRelease[Tx]) mark(id string, as contract.Outcome) contract.Mark {
	return contract.Mark{Scope: w.scope, ID: []byte(id), As: as}
}

func (w *NewerRelease[Tx]) asked(t testing.TB, marks ...contract.Mark) []contract.Verdict {
	t.Helper()
	return Asked[Tx](t, w.store, marks...)
}

// HoldsOutcome checks that a marker of this number is neither taken for one of
// this release nor acted on.
func (w *NewerRelease[Tx]) HoldsOutcome(t *testing.T, outcome int) {
	w.exec(t, fmt.Sprintf("update in.semel_markers set outcome = %d, version = 0", outcome))
	v := w.asked(t, w.mark("c", contract.Applied), w.mark("b", contract.Applied), w.mark("a", contract.Applied))
	if v[0].Kind != contract.Fresh || v[1].Kind != contract.Newer || v[2].Kind != contract.Newer {
		t.Errorf("%v", v)
	}
	if m, there, err := w.store.Marker(t.Context(), semel.Key{Consumer: "billing", Source: "shop", ID: "b"}); !errors.Is(err, newer.Err) || there {
		t.Errorf("the marker is %+v, %v", m, err)
	}
	rows, err := w.store.Rows(t.Context(), contract.RowFilter{})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	number, revision := rows[0].Number, rows[0].Revision
	retried := errors.Join(w.store.Requeue(t.Context(), contract.Act{Verb: "retry", Who: "ana"}, contract.RowRevision{Number: number, Revision: revision})...)
	discarded := errors.Join(w.store.Discard(t.Context(), contract.Act{Verb: "discard", Who: "ana"}, contract.RowRevision{Number: number, Revision: revision})...)
	for _, err := range []error{retried, discarded} {
		if !errors.Is(err, newer.Err) || !errors.Is(err, semel.ErrState) {
			t.Errorf("acted on: %v", err)
		}
	}
}

// HoldsVersion checks the same of a fingerprint of a later version.
func (w *NewerRelease[Tx]) HoldsVersion(t *testing.T) {
	w.exec(t, "update in.semel_markers set outcome = 1, version = 300")
	if v := w.asked(t, w.mark("b", contract.Applied)); v[0].Kind != contract.Newer {
		t.Errorf("%v", v)
	}
}

// TellsMarks checks that a mark is told of such an outcome whatever its content,
// and its neighbour not.
func (w *NewerRelease[Tx]) TellsMarks(t *testing.T) {
	for _, outcome := range []int{6, 9, 257, 0, -3} {
		w.exec(t, fmt.Sprintf("update in.semel_markers set outcome = %d, version = 0", outcome))
		for _, print := range []semel.Fingerprint{{}, {Version: 1, Sum: [16]byte{1}}} {
			held := w.mark("b", contract.Applied)
			held.Fingerprint = print
			v := w.asked(t, w.mark("other", contract.Applied), held)
			if v[0].Kind != contract.Fresh || v[1].Kind != contract.Newer || outcome == 9 && v[1].Was != 9 {
				t.Errorf("outcome %d: the verdicts are %v", outcome, v)
			}
		}
	}
}
