package pgxstore

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// useDailyPartitions makes the store keep its markers in daily partitions.
func (h *fixture) useDailyPartitions(t testing.TB) *fixture {
	t.Helper()
	store, err := h.Dated(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: identity.ULID})
	if err != nil {
		t.Fatal(err)
	}
	h.Store = store
	return h
}

// lentDated returns test stores with one partition that covers all ids, instead of one partition a day. With one
// partition, test cases with ids that contain no time also run with the statements of daily partitions.
func lentDated(pool *pgxpool.Pool) *services.Lent[*fixture] {
	return &services.Lent[*fixture]{
		Make: func(t testing.TB) *fixture {
			h := newFixture(t, pool).useDailyPartitions(t)
			h.execAll(t, []string{
				`do $$ declare p regclass; begin
				for p in select i.inhrelid from pg_inherits i where i.inhparent = 'in.semel_markers_1'::regclass and i.inhrelid::regclass::text ~ '_[0-9]{8}"?$' loop
				execute 'drop table ' || p; end loop; end $$`,
				`create table in.any_day partition of in.semel_markers_1 for values from (minvalue) to ('\x05'::bytea)`,
				`update in.semel_dated set low = '\x', high = '\x05', low_day = '9000-01-01', high_day = '9000-01-01'`,
			})
			return h
		},
		Empty: func(t testing.TB, used *fixture) *fixture {
			used.execAll(t, []string{services.Emptying(used.schema, "semel_migrations", "once", "semel_dated")})
			store, err := pgxstore.New(pool, pgxstore.Options{Schema: used.schema})
			if err != nil {
				t.Fatal(err)
			}
			h := &fixture{Store: store, pool: pool, schema: used.schema}
			t.Cleanup(func() { h.sound(t) })
			return h.useDailyPartitions(t)
		},
	}
}

func TestMarkersByDayKeepTheLaws(t *testing.T) {
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	var ways sqlsuite.Ways
	shops := lentDated(openPool(t, dsn, useTracer(&ways)))
	can := storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, Offsets: true, Generations: true, Controls: true, Derivations: true, OneConsumer: true, Days: true, Edits: true}
	t.Run("handle", func(t *testing.T) {
		storetest.Run(t, storetest.Harness[pgx.Tx]{Open: func(t testing.TB) storetest.Instance[pgx.Tx] { return shops.Open(t).directInstance() }, Can: can, Only: ways.First(sqlsuite.OneLine)})
	})
	t.Run("queue", func(t *testing.T) {
		can.MarkIn, can.Gather = false, true
		storetest.Run(t, storetest.Harness[*pgxstore.Queue]{Open: func(t testing.TB) storetest.Instance[*pgxstore.Queue] { return shops.Open(t).queuedInstance() }, Can: can, Only: ways.Further()})
	})
}

func TestULIDsAreRoutedByTheirTime(t *testing.T) {
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	h := newFixture(t, openPool(t, dsn)).useDailyPartitions(t)
	t.Run("trap_88_what_lies_outside_of_the_days_stands_aside", func(t *testing.T) {
		const past, future = "01B3EAF48P97R8MP9WS6MHDTZ3", "3ZZZZZZZZZ97R8MP9WS6MHDTZ3"
		marks := h.makeMarks(t, past, future)
		v := sqlsuite.Asked[pgx.Tx](t, h.Store, marks...)
		if v[0] != (store.Verdict{Kind: store.Old}) || v[1] != (store.Verdict{Kind: store.Old, Ahead: true}) {
			t.Errorf("the verdicts are %+v", v)
		}
		marks = append(marks, marks[1])
		for i := range marks {
			marks[i].As = store.Parked
		}
		b, v := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, marks)
		if v[0].Kind != store.Fresh || v[1].Kind != store.Fresh || !v[2].Already(store.Parked) {
			t.Errorf("the verdicts are %+v", v)
		}
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
		if v = sqlsuite.Asked[pgx.Tx](t, h.Store, h.makeMarks(t, past, future)...); !v[0].Already(store.Parked) || !v[1].Already(store.Parked) {
			t.Errorf("afterwards the verdicts are %+v", v)
		}
	})
}
