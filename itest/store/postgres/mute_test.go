package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// muteConn is a connection that does not report whether it is in a transaction.
type muteConn struct{ conn *stdlib.Conn }

func (m muteConn) Prepare(query string) (driver.Stmt, error) { return m.conn.Prepare(query) }
func (m muteConn) Close() error                              { return m.conn.Close() }
func (m muteConn) Begin() (driver.Tx, error) {
	return m.BeginTx(context.Background(), driver.TxOptions{})
}

func (m muteConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return m.conn.BeginTx(ctx, o)
}

func (m muteConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return m.conn.ExecContext(ctx, query, args)
}

func (m muteConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return m.conn.QueryContext(ctx, query, args)
}

func (m muteConn) CheckNamedValue(v *driver.NamedValue) error { return m.conn.CheckNamedValue(v) }

// muteConnector opens connections of type muteConn.
type muteConnector struct{ driver.Connector }

func (m muteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := m.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return muteConn{conn.(*stdlib.Conn)}, nil
}

func TestADriverThatShowsNothing(t *testing.T) {
	config, err := pgx.ParseConfig(services.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(muteConnector{stdlib.GetConnector(*config)})
	t.Cleanup(func() { _ = db.Close() })
	s := newFixture(t, db, sqlstore.Options{})
	t.Run("trap_T99_the_database_is_asked_whether_a_handler_rolled_back", func(t *testing.T) {
		marks := s.makeMarks(t, "a", "b")
		b, _ := s.begin(t, store.TxOptions{}, marks)
		if b.(store.TxStatus).TxAborted() {
			t.Error("a batch that stands is called broken")
		}
		if err := send(t.Context(), b.Tx(0), "rollback"); err != nil {
			t.Fatal(err)
		}
		if !b.(store.TxStatus).TxAborted() {
			t.Error("the next handler would write outside of any transaction")
		}
		b.Rollback(t.Context())
		s.expectWorks(t, marks)
	})
	t.Run("a_swallowed_error_is_found_in_the_same_way", func(t *testing.T) {
		b, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "c"))
		if s.spoil(t.Context(), b.Tx(0)) == nil || !b.(store.TxStatus).TxAborted() {
			t.Error("a failed transaction is not broken")
		}
		b.Rollback(t.Context())
	})
}
