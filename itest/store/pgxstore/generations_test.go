package pgxstore

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

func TestRoundTripsInAGeneration(t *testing.T) {
	proxy := pgproxy.Start(t, services.Postgres(t))
	h := newFixture(t, openPool(t, proxy.DSN(), func(c *pgxpool.Config) { c.MaxConns = 1 }))
	if err := h.BeginGenerations(t.Context(), "billing"); err != nil {
		t.Fatal(err)
	}
	deliver := func(ids []string) {
		o := store.TxOptions{Working: generations.Working{Consumer: "billing", In: generations.Active}}
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), o, h.makeMarks(t, ids...))
		for i := range ids {
			b.Tx(i).ExecOne(h.inSchema(insert), []byte(ids[i]))
		}
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
	}
	deliver(makeIDs(-2, 0)) // the first delivery prepares the statements
	t.Run("G2_to_hold_a_batch_to_its_generation_costs_no_round_trip", func(t *testing.T) {
		h.scope(t)
		proxy.ResetCounts()
		deliver(makeIDs(0, 500))
		if got := proxy.Counts().RoundTrips; got != 2 {
			t.Errorf("%d round trips, want 2", got)
		}
	})
}
