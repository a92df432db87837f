package pgxstore

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/itest/services"
)

func TestAConnectionThatAHandlerSpoiled(t *testing.T) {
	h := newShop(t, open(t, services.Postgres(t), func(c *pgxpool.Config) { c.MaxConns = 1 }))
	t.Run("it_is_closed_and_the_store_is_back", func(t *testing.T) {
		marks := [][]contract.Mark{h.marks(t, "spoils"), h.marks(t, "next")}
		b, _, err := h.Begin(t.Context(), contract.TxOptions{}, marks[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Tx(0).Exec(t.Context(), "set session characteristics as transaction read only"); err != nil {
			t.Fatal(err)
		}
		wantCommitted(t, b.Commit(t.Context(), contract.Ending{}))
		if b, _, err := h.Begin(t.Context(), contract.TxOptions{}, marks[1]); err == nil {
			b.Rollback(t.Context())
			t.Fatal("the situation did not occur: the connection writes")
		}
		b, _, err = h.Begin(t.Context(), contract.TxOptions{}, marks[1])
		if err != nil {
			t.Fatalf("the same connection was asked again: %v", err)
		}
		wantCommitted(t, b.Commit(t.Context(), contract.Ending{}))
	})
}
