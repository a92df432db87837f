package operate

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

func TestARetryOfAllLeavesConflictsWhoseFirstContentIsNotClosed(t *testing.T) {
	row := func(number int64, id string, conflict bool, state contract.RowState) contract.StoredRow {
		return contract.StoredRow{Number: number, Key: semel.Key{Consumer: "billing", ID: id}, Conflict: conflict, State: state, Revision: 1, Message: &semel.Message{}}
	}
	f := &fakeInbox{rows: []contract.StoredRow{
		row(1, "a", false, contract.StateParked), row(2, "a", true, contract.StateParked),
		row(3, "b", false, contract.StateDiscarded), row(4, "b", true, contract.StateParked),
		row(5, "c", false, contract.StateDeadLettered), row(6, "c", true, contract.StateParked),
		row(7, "d", true, contract.StateParked),
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
	filter := contract.RowFilter{States: []contract.RowState{contract.StateParked}}
	for _, dry := range []bool{true, false} {
		done := Due
		if dry {
			done = Would
		}
		got := results(Order{Verb: Retry, Filter: filter, DryRun: dry})
		for n, want := range map[int64]string{1: done, 2: Left, 4: done, 6: Left, 7: done} {
			if got[n] != want {
				t.Errorf("dry run %t: row %d is %q, want %q", dry, n, got[n], want)
			}
		}
	}
	if got := results(Order{Verb: Retry, Filter: contract.RowFilter{Numbers: []int64{2}}, Counted: true}); got[2] != Left {
		t.Errorf("of all rows, after they were counted, it is %q", got[2])
	}
	if got := results(Order{Verb: Retry, Filter: contract.RowFilter{Numbers: []int64{2}}}); got[2] != Due {
		t.Errorf("by its number it is %q", got[2])
	}
}
