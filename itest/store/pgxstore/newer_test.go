package pgxstore

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestWhatANewerReleaseWroteIsHeld(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	h.exec(t, "alter table in.semel_markers drop constraint known_outcomes")
	w := sqlsuite.Newer[pgx.Tx](t, h.Store, func(t testing.TB, statement string) { h.exec(t, statement) })
	for _, outcome := range sqlsuite.UnknownOutcomes {
		t.Run("trap_T104_a_marker_of_outcome_"+strconv.Itoa(outcome), func(t *testing.T) { w.HoldsOutcome(t, outcome) })
	}
	t.Run("trap_T104_a_marker_whose_fingerprint_is_of_an_unknown_version", w.HoldsVersion)
	t.Run("P1_a_mark_that_meets_a_marker_of_a_newer_release_is_told_so", w.TellsMarks)
}
