package demo

import (
	"context"
	"database/sql"
	"errors"
)

// settleLast books the payment and then acks it.
func settleLast(ctx context.Context, db *sql.DB, broker *client) error {
	for {
		d, err := broker.fetchOne(ctx)
		if err != nil {
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := book(ctx, tx, d.Body); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		broker.crashAt(InTransaction)
		if err := tx.Commit(); err != nil {
			return err
		}
		broker.crashAt(BetweenSteps)
		if err := broker.ack(d); err != nil {
			return err
		}
	}
}
