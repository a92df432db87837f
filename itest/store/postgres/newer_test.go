package postgres

import (
	"database/sql"
	"strconv"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

func TestWhatANewerReleaseWroteIsHeld(t *testing.T) {
	s := newFixture(t, openDB(t, services.Postgres(t)), sqlstore.Options{})
	s.exec(t, "alter table in.semel_markers drop constraint known_outcomes")
	w := sqlsuite.Newer[*sql.Tx](t, s.store, func(t testing.TB, statement string) { s.exec(t, statement) })
	for _, outcome := range sqlsuite.UnknownOutcomes {
		t.Run("trap_T104_a_marker_of_outcome_"+strconv.Itoa(outcome), func(t *testing.T) { w.HoldsOutcome(t, outcome) })
	}
	t.Run("trap_T104_a_marker_whose_fingerprint_is_of_an_unknown_version", w.HoldsVersion)
}
