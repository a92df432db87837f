package demo

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore"
)

// withSemel books the payment in a transaction that Semel opens, marks and
// commits before it tells the broker.
func withSemel(ctx context.Context, db *sql.DB, broker *client) error {
	store, err := sqlstore.SQLite(db, sqlstore.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	handle := func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		return book(ctx, tx, m.Body)
	}
	consumer, err := semel.New(store, handle, semel.Config{
		Name:     "payments",
		Source:   source{broker},
		Identity: semel.By("body:/id").From("body:/producer"),
		At:       broker.atPoint,
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}
