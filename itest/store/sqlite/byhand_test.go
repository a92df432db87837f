package sqlite

import (
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// If a person makes a row due with SQL, the row's marker is not in the state "waiting". A claim of a row that was made
// due by hand cannot end.
func TestARowThatIsMadeDueByHand(t *testing.T) {
	reclaimed := func(t *testing.T, outcome int, otherContent bool) (row store.StoredRow) {
		db := openFile(t, newFile(t), pragmas+foreignKeys)
		s := storeOn(t, db)
		number := parkRow(t, s, db)
		exec(t, db, "update semel_inbox set state = 'RECEIVED', due_at = 0")
		if otherContent {
			exec(t, db, "update semel_markers set version = 1, sum = x'ff'")
		}
		if _, err := db.Exec("update semel_markers set outcome = ?", outcome); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := s.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			exec(t, db, "update semel_inbox set due_at = 0, locked_until = 0 where state = 'IN_PROGRESS'")
		}
		rows, err := s.Rows(t.Context(), store.RowFilter{Numbers: []int64{number}})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		return rows[0]
	}
	for name, c := range map[string]struct {
		outcome int
		other   bool
		want    store.RowState
	}{
		"is_completed_when_its_content_is_applied":       {1, false, store.StateCompleted},
		"is_discarded_when_another_content_is_applied":   {1, true, store.StateDiscarded},
		"is_parked_when_its_marker_is_parked":            {3, false, store.StateParked},
		"is_parked_when_its_marker_is_discarded":         {5, false, store.StateParked},
		"stays_claimed_when_no_other_row_has_its_marker": {2, true, store.StateInProgress},
	} {
		t.Run("law_16_"+name, func(t *testing.T) {
			if row := reclaimed(t, c.outcome, c.other); row.State != c.want || c.want == store.StateParked && row.LastError == "" {
				t.Errorf("it is %s, for %q, %q", row.State, row.Reason, row.LastError)
			}
		})
	}
}

// A claim ends only if the marker still waits for its row. Without this check, a marker "applied" could be overwritten,
// or a row could be completed a second time.
func TestTheEndOfAClaimAsksForItsMarker(t *testing.T) {
	for name, state := range map[string]store.RowState{
		"a_failure_is_not_written": store.StateFailedRetryable,
		"a_parking_is_not_written": store.StateParked,
		"a_release_is_not_written": store.StateReceived,
	} {
		t.Run("law_16_"+name, func(t *testing.T) {
			db := openFile(t, newFile(t), pragmas+foreignKeys)
			s := storeOn(t, db)
			number := parkRow(t, s, db)
			exec(t, db, "update semel_inbox set state = 'RECEIVED', due_at = 0")
			exec(t, db, "update semel_markers set outcome = 2")
			claimed, err := s.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: time.Minute})
			if err != nil || len(claimed) != 1 {
				t.Fatal(claimed, err)
			}
			exec(t, db, "update semel_markers set outcome = 1")
			lost, err := s.End(t.Context(), []store.ClaimEnding{{Claim: claimed[0].Claim, State: state}})
			if err != nil || len(lost) != 1 {
				t.Errorf("lost %v, %v", lost, err)
			}
			rows, err := s.Rows(t.Context(), store.RowFilter{Numbers: []int64{number}})
			if err != nil || len(rows) != 1 || rows[0].State != store.StateInProgress {
				t.Errorf("the row is %+v, %v", rows, err)
			}
			var outcome int
			if err := db.QueryRow("select outcome from semel_markers").Scan(&outcome); err != nil || outcome != 1 {
				t.Errorf("the marker's outcome is %d, %v", outcome, err)
			}
		})
	}
}

// parkRow returns the number of a parked row.
func parkRow(t *testing.T, s *sqlstore.Store, db *sql.DB) int64 {
	t.Helper()
	scope, err := s.Scope(t.Context(), "billing", "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte("a"), As: store.Parked}})
	if err != nil {
		t.Fatal(err)
	}
	if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateParked, Reason: "permanent failure"}}}); r.Outcome != store.Committed {
		t.Fatal(r)
	}
	var number int64
	if err := db.QueryRow("select number from semel_inbox").Scan(&number); err != nil {
		t.Fatal(err)
	}
	return number
}

func TestACallThatWasBegunWhileTheClockWasAhead(t *testing.T) {
	called := func(t *testing.T, cut bool) {
		db := openFile(t, newFile(t), pragmas+foreignKeys)
		sqlsuite.CalledAhead[*sql.Tx](t, storeOn(t, db), cut, func(days int) {
			exec(t, db, "update semel_inbox set called_at = called_at + 86400000 * ?", days)
		}, func(days int) {
			exec(t, db, "update semel_inbox set due_at = due_at + 86400000 * ?1, changed_at = changed_at + 86400000 * ?1, locked_until = locked_until + 86400000 * ?1", days)
		})
	}
	t.Run("E3_trap_T113_counts_as_longer_ago_than_any_window", func(t *testing.T) { called(t, false) })
	t.Run("E3_trap_T113_also_if_the_waits_of_its_row_are_cut", func(t *testing.T) { called(t, true) })
}

func TestTwoRowsOfOneIdentityThatAreDue(t *testing.T) {
	t.Run("law_16_only_the_one_that_has_the_marker_is_worked_on", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas+foreignKeys)
		sqlsuite.OpenTwins(t, instanceOn(t, storeOn(t, db), db), func(number int64) {
			exec(t, db, "update semel_inbox set state = 'RECEIVED', reason = '', token = null, locked_until = null, due_at = 0 where number = ?", number)
		})
	})
}

func TestLeasedKeysOfAClockThatWasAhead(t *testing.T) {
	db := openFile(t, newFile(t), pragmas+foreignKeys)
	sqlsuite.KeysAhead(t, storeOn(t, db), func(by time.Duration, columns ...string) {
		for _, c := range columns {
			exec(t, db, "update semel_keys set "+c+" = "+c+" + ?", by.Microseconds())
		}
	})
}
