package operators

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore/internal/mute"
)

var errRefused = errors.New("the server shuts down")

// refusingConn is a driver that returns errRefused for each statement.
type refusingConn struct{ mute.Conn }

func (r refusingConn) Connect(context.Context) (driver.Conn, error) { return r, nil }

// ExecContext implements driver.ExecerContext.
func (refusingConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return nil, errRefused
}

// After semel.ErrChanged, an operator would search the change of the row although nobody changed the row.
func TestAFailedStatementIsNotReportedAsErrChanged(t *testing.T) {
	db := sql.OpenDB(refusingConn{})
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	row := &actedRow{}
	for name, err := range map[string]error{
		"one row":   Set(t.Context(), tx, row, "update"),
		"some rows": setAll(t.Context(), tx, []*actedRow{row, row}, "update"),
	} {
		if !errors.Is(err, errRefused) || errors.Is(err, semel.ErrChanged) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
