package postgres

import (
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/storetest"
)

// abilities contains the abilities of a store in PostgreSQL.
var abilities = storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, LeavesLate: true, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true}

// suite runs the cases of storetest that the function only selects.
func suite(t *testing.T, db *sql.DB, only func(name string) bool) {
	shops := newLent(db)
	storetest.Run(t, storetest.Harness[*sql.Tx]{
		Open: func(t testing.TB) storetest.Instance[*sql.Tx] { return shops.Open(t).Instance },
		Can:  abilities,
		Only: only,
	})
}

func TestPostgresKeepsTheLaws(t *testing.T) {
	var ways sqlsuite.Ways
	t.Run("trap_109_with_an_empty_search_path", func(t *testing.T) {
		dsn := services.Postgres(t)
		services.Hurry(t, dsn)
		suite(t, openTraced(t, dsn+"&search_path=", &ways), ways.First(nil))
	})
	for name, mode := range map[string]string{"exec": "exec", "cached descriptions": "cache_describe"} {
		t.Run("trap_108_behind_a_pooler_by_transaction_with_"+name, func(t *testing.T) {
			direct, pooled := services.Pooled(t)
			services.Hurry(t, direct)
			suite(t, openDB(t, pooled, "default_query_exec_mode="+mode), ways.Further())
		})
	}
	objectsOfOtherSchemasAreNeverCalled(t, ways.Further())
	aRoleWithTheGrantsKeepsTheLaws(t, ways.Further())
}
