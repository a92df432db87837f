package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

// statementCounter counts the statements of a connection, including BEGIN and COMMIT.
type statementCounter struct{ n atomic.Int64 }

func (s *statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (s *statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestActsOnManyRows(t *testing.T) {
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	var counted statementCounter
	s := newFixture(t, openTraced(t, dsn, &counted), sqlstore.Options{})
	other := openDB(t, dsn)
	s.exec(t, "create function in.poison() returns trigger language plpgsql as $$ begin raise exception 'poisoned'; end $$")
	w := sqlsuite.ManyActs[*sql.Tx]{Store: s.store, Statements: counted.n.Load}
	w.Poison = func(t testing.TB, number int64) func() {
		s.exec(t, fmt.Sprintf("create trigger poison before update on in.semel_inbox for each row when (old.number = %d) execute function in.poison()", number))
		return func() { s.exec(t, "drop trigger poison on in.semel_inbox") }
	}
	w.Hold = func(t testing.TB, number int64) func() {
		tx, err := other.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), s.inSchema(fmt.Sprintf("select 1 from in.semel_inbox where number = %d for update", number))); err != nil {
			t.Fatal(err)
		}
		return func() { _ = tx.Rollback() }
	}
	w.Run(t)
}
