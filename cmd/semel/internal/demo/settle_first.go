package demo

import (
	"context"
	"database/sql"
	"errors"
)

// settleFirst acks the payment and then books it.
func settleFirst(ctx context.Context, db *sql.DB, broker *client) error {
	for {
		d, err := broker.next(ctx)
		if err != nil {
			return err
		}
		if err := broker.settle(d); err != nil {
			return err
		}
		broker.at(BetweenSteps)
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := book(ctx, tx, d.Body); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		broker.at(InTransaction)
		if err := tx.Commit(); err != nil {
			return err
		}
	}
}
