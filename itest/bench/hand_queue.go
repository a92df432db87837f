package bench

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
)

// handQueue applies a batch and sends its effects together with COMMIT.
func handQueue(ctx context.Context, pool *pgxpool.Pool, effect string, batch []*semel.Message) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	fresh, err := handBegin(ctx, conn.Conn(), batch)
	var rest pgx.Batch
	for _, m := range fresh {
		var p payment
		if err = json.Unmarshal(m.Body, &p); err != nil {
			break
		}
		rest.Queue(effect, p.Account, p.Amount)
	}
	if err == nil {
		rest.Queue("commit")
		err = conn.SendBatch(ctx, &rest).Close()
	}
	if err != nil {
		_, _ = conn.Exec(ctx, "rollback")
	}
	return err
}
