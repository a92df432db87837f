package handlers

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/semeltest"
)

func bill(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
	p, err := semel.JSON[struct{ Amount int64 }](m)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "insert into payments values ($1, $2)", m.ID(), p.Amount)
	return err
}

func TestBilling(t *testing.T) {
	pool, store := pool(t)
	if _, err := pool.Exec(t.Context(), "create table payments (id text primary key, amount bigint)"); err != nil {
		t.Fatal(err)
	}
	semeltest.Run(t, func(t *testing.T) semeltest.Handler[pgx.Tx] {
		if _, err := pool.Exec(t.Context(), "truncate payments"); err != nil {
			t.Fatal(err)
		}
		return semeltest.Handler[pgx.Tx]{
			Store:    store,
			Handle:   bill,
			Config:   consumer.Config{Name: "billing", Identity: identity.CloudEvents()},
			Messages: []*semel.Message{semeltest.Message("payment-1", `{"amount":30}`), semeltest.Message("payment-2", `{"amount":12}`)},
			Effect: func(ctx context.Context) (string, error) {
				rows, err := pool.Query(ctx, "select id || ' ' || amount from payments order by id")
				if err != nil {
					return "", err
				}
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				return strings.Join(lines, "\n"), err
			},
		}
	})
}
