package pgxstore

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
)

func TestIntentsThatAreSentAgain(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	passes := func(h *fixture) func(testing.TB) {
		return func(t testing.TB) {
			h.exec(t, "update in.semel_inbox set processed_at = processed_at - interval '61 seconds'")
		}
	}
	t.Run("C12_law_1_by_two_processes_at_once", func(t *testing.T) {
		h := newFixture(t, pool)
		sqlsuite.Emission[pgx.Tx]{Store: h.Store, Sender: h.Store, ID: "1", Pass: passes(h)}.Sends(t)
	})
	t.Run("C12_law_1_by_statements_that_are_queued", func(t *testing.T) {
		h := newFixture(t, pool)
		store := h.Store.Queued()
		sqlsuite.Emission[*pgxstore.Queue]{Store: store, Sender: store, ID: "1", Pass: passes(h)}.Sends(t)
	})
}
