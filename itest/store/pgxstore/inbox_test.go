package pgxstore

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
)

func TestTheInboxLosesAndDoublesNothing(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	newAccount := func(t testing.TB) *fixture {
		h := newFixture(t, pool)
		h.exec(t, "create table in.account (balance bigint not null)")
		h.exec(t, "insert into in.account values (0)")
		return h
	}
	balance := func(h *fixture) func(testing.TB) int {
		return func(t testing.TB) (n int) {
			if err := h.pool.QueryRow(t.Context(), h.inSchema("select balance from in.account")).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Run("handle", func(t *testing.T) {
		sqlsuite.Inbox(t, func(t testing.TB) sqlsuite.Account[pgx.Tx] {
			h := newAccount(t)
			return sqlsuite.Account[pgx.Tx]{Store: h.Store, Balance: balance(h), Add: func(ctx context.Context, tx pgx.Tx, amount int) error {
				_, err := tx.Exec(ctx, h.inSchema("update in.account set balance = balance + $1"), amount)
				return err
			}}
		})
	})
	t.Run("queue", func(t *testing.T) {
		sqlsuite.Inbox(t, func(t testing.TB) sqlsuite.Account[*pgxstore.Queue] {
			h := newAccount(t)
			return sqlsuite.Account[*pgxstore.Queue]{Store: h.Store.Queued(), Balance: balance(h), Add: func(_ context.Context, q *pgxstore.Queue, amount int) error {
				q.Exec(h.inSchema("update in.account set balance = balance + $1"), amount)
				return nil
			}}
		})
	})
}
