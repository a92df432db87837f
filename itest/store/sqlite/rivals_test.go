package sqlite

import (
	"sync"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestRivalsOfTwoProcesses(t *testing.T) {
	t.Run("a_conflict_that_two_processes_meet_at_once_has_one_row_and_its_count", func(t *testing.T) {
		path := newFile(t)
		var all [2]*sqlstore.Store
		for n := range all {
			all[n] = storeOn(t, openFile(t, path, pragmas+foreignKeys))
		}
		mark := makeMarks(t, all[0], "a")[0]
		mark.Fingerprint = semel.Fingerprint{Version: 1, Sum: [16]byte{1}}
		conflict(t, all[0], mark, store.Fresh)
		mark.Fingerprint.Sum[0] = 2
		const each = 5
		var ended sync.WaitGroup
		for _, s := range all {
			ended.Go(func() {
				for range each {
					conflict(t, s, mark, store.Conflict)
				}
			})
		}
		ended.Wait()
		rows, err := all[0].Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 1 || rows[0].Repeated != 2*each-1 {
			t.Errorf("the rows are %+v, %v, want one that was repeated %d times", rows, err, 2*each-1)
		}
	})
}

// conflict delivers a message and checks the store's verdict (new, duplicate or conflict). If the content differs,
// conflict also writes an inbox row.
func conflict(t *testing.T, s *sqlstore.Store, mark store.Mark, want store.VerdictKind) {
	b, v, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{mark})
	if err != nil {
		t.Error(err)
		return
	}
	var e store.Ending
	if v[0].Kind == store.Conflict {
		e.Rows = []store.Row{{Conflict: true, Repeat: v[0].Known, State: store.StateParked, Reason: semel.ReasonConflict,
			Message: &semel.Message{Body: []byte("x")}}}
	}
	if r := b.Commit(t.Context(), e); r.Outcome != store.Committed || v[0].Kind != want {
		t.Errorf("the verdict is %v, the commit says %+v", v[0], r)
	}
}
