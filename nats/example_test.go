package nats_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/house/pages"
	"github.com/semel-go/semel/nats"
	"github.com/semel-go/semel/sqlstore"
)

// Order is the body of a message.
type Order struct {
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
}

func run(ctx context.Context, db *sql.DB, servers []string) error {
	store, err := sqlstore.Postgres(db, sqlstore.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	orders, err := nats.New(nats.Config{Servers: servers, Stream: "ORDERS", Consumer: "billing"})
	if err != nil {
		return err
	}
	billing, err := consumer.New(store, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		o, err := semel.JSON[Order](m)
		if err != nil {
			return err // an invalid body is parked, not retried
		}
		return semel.OneRow(tx.ExecContext(ctx, `update accounts set balance = balance - $1 where id = $2`, o.Amount, o.Account))
	}, consumer.Config{
		Name: "billing", Source: orders, Lanes: consumer.LanesNone,
		Identity: identity.By("header:Nats-Msg-Id"),
	})
	if err != nil {
		return err
	}
	return billing.Run(ctx)
}

func TestThePageShowsTheProgram(t *testing.T) {
	pages.Shows(t, "../docs/guides/nats.md", 1, pages.Read(t, "example_test.go"))
}

var _ = run // the page shows it
