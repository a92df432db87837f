package bench

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
)

// handAll applies a batch with one statement for all effects.
func handAll(ctx context.Context, pool *pgxpool.Pool, effect string, batch []*semel.Message) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	fresh, err := handBegin(ctx, conn.Conn(), batch)
	accounts, amounts := make([]int64, len(fresh)), make([]int64, len(fresh))
	for i, m := range fresh {
		var p payment
		if err == nil {
			err = json.Unmarshal(m.Body, &p)
		}
		accounts[i], amounts[i] = p.Account, p.Amount
	}
	if err == nil && len(fresh) > 0 {
		_, err = conn.Exec(ctx, effect, accounts, amounts)
	}
	if err != nil {
		_, _ = conn.Exec(ctx, "rollback")
		return err
	}
	_, err = conn.Exec(ctx, "commit")
	return err
}
