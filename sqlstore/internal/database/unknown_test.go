package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/semel-go/semel/sqlstore/internal/mute"
)

// silent is a driver that loses the answer of each COMMIT.
type silent struct{ mute.Conn }

func (silent) Connect(context.Context) (driver.Conn, error) { return silent{}, nil }

func (silent) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return silent{}, nil }

// ExecContext implements driver.ExecerContext.
func (silent) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (silent) Commit() error { return io.ErrUnexpectedEOF }

func TestAnErrorOfACommitWithoutAnAnswerSaysThatItMayHaveBeenCommitted(t *testing.T) {
	db := sql.OpenDB(silent{})
	defer func() { _ = db.Close() }()
	s, err := OpenPostgres(db, statements, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), func(*sql.Tx) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "may have been committed") || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the error is %v", err)
	}
}
