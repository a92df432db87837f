package postgres

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
)

// ofPool is a database whose driver's connections are those of a pool of pgx:
// closing one only gives it back.
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
	for name, db := range map[string]*sql.DB{"of_database_sql": fresh(t), "of_a_pool_of_pgx": ofPool(t)} {
		t.Run("it_is_closed_and_the_store_is_back/"+name, func(t *testing.T) {
			s := newShop(t, db, sqlstore.Options{})
			marks := [][]contract.Mark{s.marks(t, "spoils"), s.marks(t, "next")}
			db.SetMaxOpenConns(1)
			b, _ := s.begin(t, contract.TxOptions{}, marks[0])
			if _, err := b.Tx(0).Exec("set session characteristics as transaction read only"); err != nil {
				t.Fatal(err)
			}
			if r := b.Commit(t.Context(), contract.Ending{}); r.Outcome != contract.Committed {
				t.Fatal(r)
			}
			if b, _, err := s.store.Begin(t.Context(), contract.TxOptions{}, marks[1]); err == nil {
				b.Rollback(t.Context())
				t.Fatal("the situation did not occur: the connection writes")
			}
			b, _, err := s.store.Begin(t.Context(), contract.TxOptions{}, marks[1])
			if err != nil {
				t.Fatalf("the same connection was asked again: %v", err)
			}
			if r := b.Commit(t.Context(), contract.Ending{}); r.Outcome != contract.Committed {
				t.Error(r)
			}
		})
	}
}
