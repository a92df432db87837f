package bench

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
)

// handHandle applies a batch with one round trip for each effect.
func handHandle(ctx context.Context, pool *pgxpool.Pool, effect string, batch []*semel.Message) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	fresh, err := handBegin(ctx, conn.Conn(), batch)
	for _, m := range fresh {
		var p payment
		if err == nil {
			err = json.Unmarshal(m.Body, &p)
		}
		if err == nil {
			_, err = conn.Exec(ctx, effect, p.Account, p.Amount)
		}
	}
	if err != nil {
		_, _ = conn.Exec(ctx, "rollback")
		return err
	}
	_, err = conn.Exec(ctx, "commit")
	return err
}
