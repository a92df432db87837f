package pgxstore

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/store"
)

// idsOfSet returns n ids that begin with the name of a set.
func idsOfSet(set string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(set, i))
	}
	return ids
}

// run applies batches of new messages, so that the store assumes that the messages of the next batch are also new.
func run(t testing.TB, h *fixture, set string) {
	t.Helper()
	for i := range 32 {
		wantCommitted(t, deliverQueued(t, h, idsOfSet(fmt.Sprint(set, i, "-"), 16)))
	}
}

// If the store assumes that all messages of a batch are new, it sends no query for each message. A wrong assumption
// costs one extra transaction, which this test counts in round trips.
func TestMarksThatAreTakenToBeNew(t *testing.T) {
	proxy := pgproxy.Start(t, services.Postgres(t))
	alone := func(c *pgxpool.Config) { c.MaxConns = 1 }
	for _, f := range forms() {
		t.Run("B12_a_copy_is_no_effect_"+f.name, func(t *testing.T) {
			h := newFixture(t, openPool(t, proxy.DSN(), alone))
			for range 2 { // the first run also prepares the statements for duplicates
				wantCommitted(t, f.deliver(t, h, idsOfSet("first", 16)))
			}
			run(t, h, "a")
			wantCommitted(t, f.deliver(t, h, idsOfSet("new", 16)))
			mixed := append(idsOfSet("later", 15), "new3")
			guessed := countTrips(proxy, func() { wantCommitted(t, f.deliver(t, h, mixed)) })
			again := countTrips(proxy, func() { wantCommitted(t, f.deliver(t, h, append(idsOfSet("last", 15), "new4"))) })
			if guessed != again+2 {
				t.Errorf("a wrong guess took %d round trips, and a batch that asks %d: nothing was guessed", guessed, again)
			}
			h.wantApplied(t, append(append(mixed, "new4"), idsOfSet("new", 16)...)...)
		})
	}
	t.Run("B12_each_verdict_after_a_wrong_guess", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t)))
		run(t, h, "b")
		parked := h.makeMarks(t, "parked")
		parked[0].As = store.Parked
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, parked)
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
		b, v := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, append(idsOfSet("fresh", 14), "parked", "b3-1")...))
		defer b.Rollback(t.Context())
		for i := range 14 {
			if v[i].Kind != store.Fresh {
				t.Errorf("a new message has the verdict %v", v[i].Kind)
			}
		}
		if !v[14].Already(store.Parked) || !v[15].Already(store.Applied) {
			t.Errorf("a parked and an applied message have the verdicts %v and %v", v[14].Kind, v[15].Kind)
		}
	})
	t.Run("B12_law_3_a_guess_that_was_rolled_back_leaves_nothing", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t)))
		run(t, h, "c")
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, idsOfSet("gone", 16)...))
		b.Rollback(t.Context())
		h.wantNothing(t, idsOfSet("gone", 16)...)
	})
	t.Run("B12_law_1_markers_that_are_kept_out_are_found", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t)))
		run(t, h, "d")
		h.exec(t, `create function in.keep_out() returns trigger language plpgsql as $$ begin if position('x7'::bytea in new.id) > 0 then return null; end if; return new; end $$`)
		h.exec(t, `create trigger keep_out before insert on in.semel_markers for each row execute function in.keep_out()`)
		if b, _, err := h.Begin(t.Context(), store.TxOptions{}, h.makeMarks(t, idsOfSet("x", 16)...)); err == nil {
			b.Rollback(t.Context())
			t.Error("a batch began although one marker was not written")
		}
	})
}

// countTrips returns the number of round trips that f causes.
func countTrips(proxy *pgproxy.Proxy, f func()) int {
	before := proxy.Counts().RoundTrips
	f()
	return proxy.Counts().RoundTrips - before
}
