package postgres

import (
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/storetest"
)

// The files with SQL that Semel sends to PostgreSQL.
var sqlSources = []string{"../../../sqlstore/postgres/*.sql", "../../../sqlstore/postgres/migrations/*.sql", "../../../sqlstore/*.go", "../../../internal/adoption/*.go",
	"../../../pgxstore/*.go", "../../../cmd/semel/internal/assembly/*.go", "../../../cmd/semel/internal/check/*.go"}

// newShadowedDatabase returns a database in which a user's functions and operators match calls better than the
// built-in ones. The user's functions and operators raise errors when they are called.
func newShadowedDatabase(t testing.TB) (dsn string) {
	t.Helper()
	dsn = services.Postgres(t)
	services.Hurry(t, dsn)
	return services.Shadow(t, dsn, sqlSources...)
}

// objectsOfOtherSchemasAreNeverCalled runs the test cases in the database that newShadowedDatabase returns.
func objectsOfOtherSchemasAreNeverCalled(t *testing.T, only func(name string) bool) {
	t.Run("P4_by_what_the_suite_of_stores_does", func(t *testing.T) {
		dsn := newShadowedDatabase(t)
		db := openDB(t, dsn)
		shops := services.Lent[*fixture]{Make: func(t testing.TB) *fixture {
			s := newFixture(t, db, sqlstore.Options{})
			services.ShadowOwn(t, dsn, s.schema)
			return s
		}, Empty: truncateTables}
		storetest.Run(t, storetest.Harness[*sql.Tx]{
			Open: func(t testing.TB) storetest.Instance[*sql.Tx] { return shops.Open(t).Instance },
			Can:  abilities,
			Only: only,
		})
	})
}
