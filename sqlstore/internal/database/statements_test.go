package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/semel-go/semel/sqlstore/internal/mute"
)

// counting is a driver whose statements return the field result.
type counting struct {
	mute.Conn
	result driver.Result
}

func (c counting) Connect(context.Context) (driver.Conn, error) { return c, nil }

// ExecContext implements driver.ExecerContext.
func (c counting) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return c.result, nil
}

func TestExecOneSucceedsOnlyIfTheDriverCountsOneRow(t *testing.T) {
	errOtherwise := errors.New("it is not there")
	for name, c := range map[string]struct {
		result driver.Result
		fails  bool
	}{
		"one": {driver.RowsAffected(1), false}, "none": {driver.RowsAffected(0), true}, "two": {driver.RowsAffected(2), true},
		"no count": {driver.ResultNoRows, true},
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(counting{result: c.result})
			defer func() { _ = db.Close() }()
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			err = ExecOne(t.Context(), tx, errOtherwise, "update")
			if errors.Is(err, errOtherwise) != c.fails || (err != nil) != c.fails {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
