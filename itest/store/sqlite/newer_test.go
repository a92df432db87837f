package sqlite

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestWhatANewerReleaseWroteIsHeld(t *testing.T) {
	db := openFile(t, newFile(t), pragmas+foreignKeys)
	w := sqlsuite.Newer[*sql.Tx](t, storeOn(t, db), func(t testing.TB, statement string) {
		exec(t, db, strings.ReplaceAll(statement, "in.", ""))
	})
	for _, outcome := range sqlsuite.UnknownOutcomes {
		t.Run("trap_T104_a_marker_of_outcome_"+strconv.Itoa(outcome), func(t *testing.T) { w.HoldsOutcome(t, outcome) })
	}
	t.Run("trap_T104_a_marker_whose_fingerprint_is_of_an_unknown_version", w.HoldsVersion)
	t.Run("P1_a_mark_that_meets_a_marker_of_a_newer_release_is_told_so", w.TellsMarks)
}
