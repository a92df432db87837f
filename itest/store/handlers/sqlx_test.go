package handlers

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semeltest"
)

// recordWithSQLX is record with sqlx, in the transaction of the consumer.
func recordWithSQLX(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
	p, err := semel.JSON[struct{ Amount int64 }](m)
	if err != nil {
		return err
	}
	x := sqlx.Tx{Tx: tx, Mapper: reflectx.NewMapperFunc("db", strings.ToLower)}
	_, err = x.NamedExecContext(ctx, "insert into payments values (:id, :amount)", map[string]any{"id": m.ID(), "amount": p.Amount})
	return err
}

func TestRecordWithSQLX(t *testing.T) {
	db, store := newFixture(t, filepath.Join(t.TempDir(), "shop.db"))
	shop := sqlx.NewDb(db, "sqlite")
	semeltest.Run(t, func(t *testing.T) semeltest.Handler[*sql.Tx] {
		_, err := shop.ExecContext(t.Context(), "delete from payments")
		must(t, err)
		return semeltest.Handler[*sql.Tx]{
			Store:    store,
			Handle:   recordWithSQLX,
			Messages: []*semel.Message{semeltest.Message("payment-1", `{"amount":30}`), semeltest.Message("payment-2", `{"amount":12}`)},
			Effect: func(ctx context.Context) (string, error) {
				var all []string
				err := shop.SelectContext(ctx, &all, "select id || ' ' || amount from payments order by id")
				return strings.Join(all, "\n"), err
			},
		}
	})
}
