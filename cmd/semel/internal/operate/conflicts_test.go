package operate

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

func TestARetryOfAllSkipsConflictsWhoseFirstContentIsOpen(t *testing.T) {
	row := func(number int64, id string, conflict bool, state store.RowState) store.StoredRow {
		return store.StoredRow{Number: number, Key: semel.Key{Consumer: "billing", ID: id}, Conflict: conflict, State: state, Revision: 1, Message: &semel.Message{}}
	}
	f := &fakeInbox{rows: []store.StoredRow{
		row(1, "a", false, store.StateParked), row(2, "a", true, store.StateParked),
		row(3, "b", false, store.StateDiscarded), row(4, "b", true, store.StateParked),
		row(5, "c", false, store.StateDeadLettered), row(6, "c", true, store.StateParked),
		row(7, "d", true, store.StateParked),
	}}
	box := Box{Inbox: f, Requeuer: f}
	results := func(o Order) map[int64]string {
		all := map[int64]string{}
		for r, err := range box.Carry(t.Context(), o) {
			if err != nil {
				t.Fatal(err)
			}
			all[r.Number] = r.Result
			if r.Result == Left && (r.Error == "" || !r.OK()) {
				t.Errorf("%+v", r)
			}
		}
		return all
	}
	filter := store.RowFilter{States: []store.RowState{store.StateParked}}
	for _, dry := range []bool{true, false} {
		done := Due
		if dry {
			done = Would
		}
		got := results(Order{Verb: admin.Retry, Filter: filter, DryRun: dry})
		for n, want := range map[int64]string{1: done, 2: Left, 4: done, 6: Left, 7: done} {
			if got[n] != want {
				t.Errorf("dry run %t: row %d is %q, want %q", dry, n, got[n], want)
			}
		}
	}
	if got := results(Order{Verb: admin.Retry, Filter: store.RowFilter{Numbers: []int64{2}}, Counted: true}); got[2] != Left {
		t.Errorf("after a count of all rows, the result is %q", got[2])
	}
	if got := results(Order{Verb: admin.Retry, Filter: store.RowFilter{Numbers: []int64{2}}}); got[2] != Due {
		t.Errorf("by its number, the result is %q", got[2])
	}
}
