package demo

import (
	"context"
	"database/sql"
	"errors"
)

// settleFirst acks the payment and then books it.
func settleFirst(ctx context.Context, db *sql.DB, broker *client) error {
	for {
		d, err := broker.fetchOne(ctx)
		if err != nil {
			return err
		}
		if err := broker.ack(d); err != nil {
			return err
		}
		broker.crashAt(BetweenSteps)
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
	}
}
