package assembly

import (
	"context"
	"database/sql"
	"errors"
)

// Query implements database: in a transaction that may not write.
func (d *postgres) Query(ctx context.Context, query string, each func(*sql.Rows) error) error {
	tx, err := d.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	err = eachRow(ctx, tx, query, each)
	return errors.Join(err, tx.Rollback())
}

// Query implements database: on a connection that may not write.
func (d *sqlite) Query(ctx context.Context, query string, each func(*sql.Rows) error) error {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "pragma query_only = on"); err != nil {
		return err
	}
	err = eachRow(ctx, c, query, each)
	_, back := c.ExecContext(context.WithoutCancel(ctx), "pragma query_only = off")
	return errors.Join(err, back)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func eachRow(ctx context.Context, q querier, query string, each func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
