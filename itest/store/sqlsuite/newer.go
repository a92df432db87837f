package sqlsuite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/newer"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
)

// NewerStore has the operations of a SQL store that read markers of a newer release.
type NewerStore[Tx any] interface {
	store.TxStore[Tx]
	store.Inbox
	admin.Requeuer
	admin.MarkerReader
}

// UnknownOutcomes are outcome numbers that have no meaning in this release.
var UnknownOutcomes = []int{6, 257, 0, -3}

// NewerRelease is a store with a parked message "a" and an applied message "b". The test uses SQL to change the markers
// of both messages to values of a newer release. Package storetest tests the values that a store can write itself.
type NewerRelease[Tx any] struct {
	store NewerStore[Tx]
	exec  func(t testing.TB, statement string)
	scope int64
}

// Newer writes the messages "a" and "b". The function exec runs a statement in which in.semel_markers is the table of
// markers. The table of markers must accept any outcome.
func Newer[Tx any](t testing.TB, st NewerStore[Tx], exec func(t testing.TB, statement string)) *NewerRelease[Tx] {
	t.Helper()
	scope := must.Get(st.Scope(t.Context(), "billing", "shop", 0))(t)
	w := &NewerRelease[Tx]{st, exec, scope}
	b, _ := Begin[Tx](t, st, store.TxOptions{}, []store.Mark{w.mark("a", store.Parked), w.mark("b", store.Applied)})
	row := store.Row{Mark: 0, State: store.StateParked, Message: &semel.Message{}}
	if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{row}}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
	return w
}

func (w *NewerRelease[Tx]) mark(id string, as store.Outcome) store.Mark {
	return store.Mark{Scope: w.scope, ID: []byte(id), As: as}
}

func (w *NewerRelease[Tx]) askStore(t testing.TB, marks ...store.Mark) []store.Verdict {
	t.Helper()
	return Asked[Tx](t, w.store, marks...)
}

// HoldsOutcome checks a marker with an unknown outcome number. The store must neither read this number as an outcome of
// the present release nor change the marker.
func (w *NewerRelease[Tx]) HoldsOutcome(t *testing.T, outcome int) {
	w.exec(t, fmt.Sprintf("update in.semel_markers set outcome = %d, version = 0", outcome))
	v := w.askStore(t, w.mark("c", store.Applied), w.mark("b", store.Applied), w.mark("a", store.Applied))
	if v[0].Kind != store.Fresh || v[1].Kind != store.Newer || v[2].Kind != store.Newer {
		t.Errorf("%v", v)
	}
	if m, there, err := w.store.Marker(t.Context(), semel.Key{Consumer: "billing", Source: "shop", ID: "b"}); !errors.Is(err, newer.Err) || there {
		t.Errorf("the marker is %+v, %v", m, err)
	}
	rows, err := w.store.Rows(t.Context(), store.RowFilter{})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	number, revision := rows[0].Number, rows[0].Revision
	retried := errors.Join(w.store.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ana"}, store.RowRevision{Number: number, Revision: revision})...)
	discarded := errors.Join(w.store.Discard(t.Context(), store.Act{Verb: "discard", Who: "ana"}, store.RowRevision{Number: number, Revision: revision})...)
	for _, err := range []error{retried, discarded} {
		if !errors.Is(err, newer.Err) || !errors.Is(err, semel.ErrState) {
			t.Errorf("acted on: %v", err)
		}
	}
}

// HoldsVersion is like HoldsOutcome, for a marker whose fingerprint has a later version.
func (w *NewerRelease[Tx]) HoldsVersion(t *testing.T) {
	w.exec(t, "update in.semel_markers set outcome = 1, version = 300")
	if v := w.askStore(t, w.mark("b", store.Applied)); v[0].Kind != store.Newer {
		t.Errorf("%v", v)
	}
}

// TellsMarks checks that Begin reports an unknown outcome for every content of the message, and that the other message
// of the batch is unaffected.
func (w *NewerRelease[Tx]) TellsMarks(t *testing.T) {
	for _, outcome := range []int{6, 9, 257, 0, -3} {
		w.exec(t, fmt.Sprintf("update in.semel_markers set outcome = %d, version = 0", outcome))
		for _, print := range []semel.Fingerprint{{}, {Version: 1, Sum: [16]byte{1}}} {
			held := w.mark("b", store.Applied)
			held.Fingerprint = print
			v := w.askStore(t, w.mark("other", store.Applied), held)
			if v[0].Kind != store.Fresh || v[1].Kind != store.Newer || outcome == 9 && v[1].Was != 9 {
				t.Errorf("outcome %d: the verdicts are %v", outcome, v)
			}
		}
	}
}
