package postgres

import (
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/storetest"
)

// abilities are those of a store in PostgreSQL.
var abilities = storetest.Abilities{Inbox: true, Look: true, Replays: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, LeavesLate: true, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true}

func TestPostgresKeepsTheLaws(t *testing.T) {
	run := func(t *testing.T, db *sql.DB) {
		shops := lent(db)
		storetest.Run(t, storetest.Harness[*sql.Tx]{
			Open: func(t testing.TB) storetest.Instance[*sql.Tx] { return shops.Open(t).Instance },
			Can:  abilities,
		})
	}
	for name, mode := range map[string]string{"exec": "exec", "cached descriptions": "cache_describe"} {
		t.Run("trap_108_behind_a_pooler_by_transaction_with_"+name, func(t *testing.T) {
			direct, pooled := services.Pooled(t)
			services.Hurry(t, direct)
			run(t, openDB(t, pooled, "default_query_exec_mode="+mode))
		})
	}
	t.Run("trap_109_with_an_empty_search_path", func(t *testing.T) {
		run(t, fresh(t, "search_path="))
	})
}
