package orm

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/source"
)

// WithPGX gives handlers a pgx.Tx.
func WithPGX(ctx context.Context, pool *pgxpool.Pool, payments source.Source) error {
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	billing, err := consumer.New(store, func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
		p, err := semel.JSON[Payment](m)
		if err != nil {
			return err
		}
		return pgxstore.OneRow(tx.Exec(ctx, `update accounts set balance = balance + $1 where id = $2`, p.Amount, p.Account))
	}, consumer.Config{Name: "billing", Source: payments, Identity: identity.CloudEvents()})
	if err != nil {
		return err
	}
	return billing.Run(ctx)
}

// WithQueue lets handlers queue statements, which the store sends together.
func WithQueue(ctx context.Context, store *pgxstore.Store, payments source.Source) error {
	billing, err := consumer.New(store.Queued(), func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
		p, err := semel.JSON[Payment](m)
		if err != nil {
			return err
		}
		q.ExecOne(`update accounts set balance = balance + $1 where id = $2`, p.Amount, p.Account)
		return nil
	}, consumer.Config{Name: "billing", Source: payments, Identity: identity.CloudEvents()})
	if err != nil {
		return err
	}
	return billing.Run(ctx)
}

// WithCallback checks the database's answer before the commit, and rejects the message if the answer is
// wrong.
func WithCallback(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
	p, err := semel.JSON[Payment](m)
	if err != nil {
		return err
	}
	q.Query(`update accounts set balance = balance + $1 where id = $2 returning balance`, p.Amount, p.Account).
		Do(func(rows pgx.Rows) error {
			balance, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
			if err == nil && balance < 0 {
				err = semel.Park("overdrawn")
			}
			return err
		})
	return nil
}
