package pgxstore

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
)

// OneRow turns the answer to a guarded statement into the handler's outcome: err
// as it is, semel.PreconditionFailed unless the statement changed one row. Queue.ExecOne does
// so for a queued statement.
//
//	return pgxstore.OneRow(tx.Exec(ctx, `update … where id = $1 and status = 'awaiting'`, id))
func OneRow(tag pgconn.CommandTag, err error) error {
	if n := tag.RowsAffected(); err == nil && n != 1 {
		err = semel.PreconditionFailed(fmt.Sprintf("changed %d rows, not 1", n))
	}
	return err
}
