package sqlite

import (
	"slices"
	"testing"

	"github.com/semel-go/semel/contract"
)

func TestALookAtRowsInPages(t *testing.T) {
	db := openFile(t, newFile(t), pragmas)
	s := storeOn(t, db)
	scope, err := s.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Scope(t.Context(), "audit", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	// Each of them waits by its row, and there is no marker that says so.
	states := []contract.RowState{contract.StateReceived, contract.StateInProgress, contract.StateFailedRetryable, contract.StateBlocked, contract.StateCompleted}
	for i := range 15 {
		of := scope
		if i%3 == 2 {
			of = other
		}
		if _, err := db.Exec(`insert into semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, started, finished, repeated, first_error, last_error)
values (1, ?, ?, x'', 0, 0, ?, '', '', 0, 0, '', '', '', '{}', x'', 0, 0, 0, 0, 0, '', '')`, of, []byte{0, byte(i)}, string(states[i%len(states)])); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("K3_law_12_finds_the_same_whatever_a_page_has", func(t *testing.T) {
		for _, most := range []int{100, 15, 14, 5, 2, 1} {
			var found []int64
			var after, rows int64
			for {
				all, last, looked, err := s.Denials(t.Context(), "billing", after, most)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range all {
					found = append(found, d.Row)
				}
				if rows += looked; looked == 0 {
					break
				}
				after = last
			}
			slices.Sort(found)
			if want := []int64{1, 2, 4, 5, 7, 8, 10, 11, 13, 14}; !slices.Equal(found, want) || rows != 15 || after != 15 {
				t.Errorf("in pages of %d: %v, up to %d of %d rows", most, found, after, rows)
			}
		}
	})
}
