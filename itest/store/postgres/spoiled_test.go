package postgres

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

// ofPool returns a database whose connections come from a pgx pool. Closing a connection of the database only returns
// the connection to the pool.
func ofPool(t *testing.T) *sql.DB {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), services.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestAConnectionThatAHandlerSpoiled(t *testing.T) {
	for name, db := range map[string]*sql.DB{"of_database_sql": newDatabase(t), "of_a_pool_of_pgx": ofPool(t)} {
		t.Run("it_is_closed_and_the_store_is_back/"+name, func(t *testing.T) {
			s := newFixture(t, db, sqlstore.Options{})
			db.SetMaxOpenConns(1)
			sqlsuite.SpoiledConnection(t, s.Instance)
		})
	}
}
