package demo

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/sqlstore"
)

// withSemel books the payment in a transaction that Semel opens. Semel writes the marker, commits, and then
// acks.
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
	running, err := consumer.New(store, handle, consumer.Config{
		Name:     "payments",
		Source:   brokerSource{broker},
		Identity: identity.By("body:/id").From("body:/producer"),
	}, faults.Plan{At: broker.crashAtFault})
	if err != nil {
		return err
	}
	return running.Run(ctx)
}
