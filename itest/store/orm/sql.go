package orm

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
)

// WithSQL gives handlers a *sql.Tx. Any PostgreSQL driver for database/sql works.
func WithSQL(ctx context.Context, db *sql.DB, payments source.Source, apply func(context.Context, *sql.Tx, Payment) error) error {
	store, err := sqlstore.Postgres(db, sqlstore.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	billing, err := consumer.New(store, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		p, err := semel.JSON[Payment](m)
		if err != nil {
			return err
		}
		return apply(ctx, tx, p)
	}, consumer.Config{Name: "billing", Source: payments, Identity: identity.CloudEvents()})
	if err != nil {
		return err
	}
	return billing.Run(ctx)
}

// BySQL applies a payment with a statement.
func BySQL(ctx context.Context, tx *sql.Tx, p Payment) error {
	return semel.OneRow(tx.ExecContext(ctx, `update accounts set balance = balance + $1 where id = $2`, p.Amount, p.Account))
}
