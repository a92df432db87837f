package postgres

import (
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/storetest"
)

// anySource is a user's own table of processed messages. The ids in this table have up to 2,000 bytes, and a column
// contains the source.
var anySource = sqlstore.Adopted{Consumer: "billing", Table: "in.processed", ID: "message_id", SourceColumn: "origin", AtColumn: "processed_at"}

const makeAnySource = `create table if not exists in.processed (message_id bytea not null, origin text not null, processed_at timestamptz not null, unique (origin, message_id))`

// adopt makes the store also write its markers to a user's own table.
func (s *fixture) adopt(t testing.TB, a sqlstore.Adopted) *fixture {
	t.Helper()
	a.Table = s.inSchema(a.Table)
	store, err := s.store.Adopt(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.store, s.Instance.Store = store, store
	return s
}

func (s *fixture) adoptAny(t testing.TB) *fixture {
	t.Helper()
	s.exec(t, makeAnySource)
	return s.adopt(t, anySource)
}

func TestAnAdoptedTableKeepsTheLaws(t *testing.T) {
	run := func(t *testing.T, db *sql.DB) {
		shops := newLent(db)
		storetest.Run(t, storetest.Harness[*sql.Tx]{
			Open: func(t testing.TB) storetest.Instance[*sql.Tx] { return shops.Open(t).adoptAny(t).Instance },
			Can:  storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, OneConsumer: true, LongestID: 2000, LeavesLate: true, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true},
			Only: sqlsuite.OneLine,
		})
	}
	if sqlsuite.EveryWay() {
		t.Run("J2_with_an_adopted_table", func(t *testing.T) { run(t, newDatabase(t)) })
	}
	t.Run("J2_with_an_adopted_table_and_an_empty_search_path", func(t *testing.T) { run(t, newDatabase(t, "search_path=")) })
}
