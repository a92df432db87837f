package pgxstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// adopt makes the store also write its markers to a user's own table.
func (h *fixture) adopt(t testing.TB, create string, a sqlstore.Adopted) *fixture {
	t.Helper()
	h.exec(t, create)
	a.Consumer, a.Table = "billing", h.inSchema("in.processed")
	store, err := h.Adopt(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Store = store
	return h
}

func (h *fixture) adoptAny(t testing.TB) *fixture {
	t.Helper()
	return h.adopt(t, "create table if not exists in.processed (message_id bytea not null, origin text not null, unique (origin, message_id))",
		sqlstore.Adopted{ID: "message_id", SourceColumn: "origin"})
}

func TestAnAdoptedTableKeepsTheLaws(t *testing.T) {
	var ways sqlsuite.Ways
	shops := newLent(openPool(t, services.Postgres(t), useTracer(&ways)))
	t.Run("J2_with_an_adopted_table_through_pgx", func(t *testing.T) {
		storetest.Run(t, storetest.Harness[pgx.Tx]{
			Open: func(t testing.TB) storetest.Instance[pgx.Tx] { return shops.Open(t).adoptAny(t).directInstance() },
			Can:  storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, OneConsumer: true, LongestID: 2000, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true},
			Only: ways.First(sqlsuite.OneLine),
		})
	})
	t.Run("J2_with_an_adopted_table_and_queued_statements", func(t *testing.T) {
		storetest.Run(t, storetest.Harness[*pgxstore.Queue]{
			Open: func(t testing.TB) storetest.Instance[*pgxstore.Queue] {
				return shops.Open(t).adoptAny(t).queuedInstance()
			},
			Can:  storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Gather: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, Positions: true, OneConsumer: true, LongestID: 2000, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true},
			Only: ways.Further(),
		})
	})
}

func TestAdoption(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	for _, f := range forms() {
		t.Run("J2_old_rows_count_as_applied_and_new_ones_are_written_by_"+f.name, func(t *testing.T) {
			h := newFixture(t, pool).adopt(t, "create table in.processed (message_id varchar(50) primary key, state text not null, at timestamptz not null default now())",
				sqlstore.Adopted{ID: "message_id", Source: "shop", Values: map[string]string{"state": "done"}})
			h.exec(t, "insert into in.processed values ('1', 'done'), ('2', 'old')")
			for range 2 {
				wantCommitted(t, f.deliver(t, h, makeIDs(0, 6)))
			}
			for i, id := range makeIDs(0, 6) {
				effects := map[bool]int{true: 0, false: 1}[i == 1 || i == 2]
				if n := h.count(t, id); n != effects {
					t.Errorf("%s has %d effects, want %d", id, n, effects)
				}
			}
			if n := h.number(t, "select count(*) from in.processed where state = 'done' and at is not null"); n != 5 {
				t.Errorf("%d rows that the old code takes for done", n)
			}
		})
		t.Run("J2_both_codes_at_once_have_one_effect_by_"+f.name, func(t *testing.T) { bothCodes(t, f, newFixture(t, pool)) })
	}
}

func bothCodes(t *testing.T, f form, h *fixture) {
	h.adopt(t, "create table in.processed (message_id bigint primary key)", sqlstore.Adopted{ID: "message_id", Source: "shop"})
	ids := makeIDs(0, 300)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for _, id := range ids {
				if err := h.processManually(t.Context(), id); err != nil {
					t.Error(err)
					return
				}
			}
		})
		all.Go(func() {
			for i := 0; i < len(ids); i += 20 {
				if r := f.deliver(t, h, ids[i:i+20]); r.Outcome != store.Committed {
					t.Error(r)
					return
				}
			}
		})
	}
	all.Wait()
	h.wantApplied(t, ids...)
	if n := h.number(t, "select count(*) from in.processed"); n != len(ids) {
		t.Errorf("%d rows", n)
	}
}

// processManually writes a row and the effect in one transaction, like a consumer without Semel that has a table of
// processed messages.
func (h *fixture) processManually(ctx context.Context, id string) error {
	return pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, h.inSchema("insert into in.processed (message_id) values ($1::text::bigint) on conflict do nothing"), id)
		if err != nil || done.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, h.inSchema(insert), []byte(id))
		return err
	})
}

func TestAdoptionIsRefusedThroughPGX(t *testing.T) {
	t.Run("J2_a_missing_key_is_refused_through_pgx", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t)))
		h.exec(t, "create table in.processed (message_id text)")
		_, err := h.Adopt(t.Context(), sqlstore.Adopted{Consumer: "billing", Table: h.inSchema("in.processed"), ID: "message_id"})
		if err == nil || !strings.Contains(fmt.Sprint(err), "no unique key") {
			t.Errorf("got %v", err)
		}
	})
}

func TestRoundTripsWithAnAdoptedTable(t *testing.T) {
	proxy := pgproxy.Start(t, services.Postgres(t))
	h := newFixture(t, openPool(t, proxy.DSN(), func(c *pgxpool.Config) { c.MaxConns = 1 }))
	h.adopt(t, "create table in.processed (message_id text primary key)", sqlstore.Adopted{ID: "message_id", Source: "shop"})
	for _, deliver := range []func(testing.TB, *fixture, []string) store.Result{deliverDirect, deliverQueued} {
		for range 2 { // the first run prepares the statements
			wantCommitted(t, deliver(t, h, makeIDs(-2, 0)))
		}
		h.exec(t, "delete from in.semel_markers")
		h.exec(t, "delete from in.processed")
	}
	h.exec(t, "insert into in.processed select n::text from generate_series(650, 699) n")
	for _, c := range []struct {
		sentence string
		deliver  func(testing.TB, *fixture, []string) store.Result
		ids      []string
		want     int
	}{
		{"J2_an_adopted_table_costs_handle_no_round_trip", deliverDirect, makeIDs(0, 100), 102},
		{"J2_an_adopted_table_costs_queue_no_round_trip", deliverQueued, makeIDs(100, 600), 2},
		{"J2_rows_of_an_adopted_table_cost_what_duplicates_cost", deliverQueued, makeIDs(600, 700), 3},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			h.scope(t)
			proxy.ResetCounts()
			wantCommitted(t, c.deliver(t, h, c.ids))
			if got := proxy.Counts().RoundTrips; got != c.want {
				t.Errorf("%d round trips, want %d", got, c.want)
			}
		})
	}
}
