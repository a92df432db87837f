package bench

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
)

// Contestant is who applies messages.
type Contestant string

// The contestants. Again is Hand once more.
const (
	Semel    Contestant = "semel"
	Hand     Contestant = "hand"
	Again    Contestant = "again"
	Textbook Contestant = "textbook"
)

// apply applies the messages and returns when all are committed.
func (d *database) apply(ctx context.Context, who Contestant, c Conditions, messages []*semel.Message) (outcome, error) {
	switch who {
	case Semel:
		return d.applySemel(ctx, c, messages)
	case Textbook:
		return share(ctx, c.Workers, messages, 1, d.textbook(c))
	}
	return share(ctx, c.Workers, messages, batchMost, d.hand(c))
}

// batchFunc applies a batch in a transaction.
type batchFunc func(context.Context, []*semel.Message) error

func (d *database) hand(c Conditions) batchFunc {
	one, all := c.Effect.one(), c.Effect.all()
	switch c.Form {
	case Handle:
		return func(ctx context.Context, batch []*semel.Message) error { return handHandle(ctx, d.pool, one, batch) }
	case Queue:
		return func(ctx context.Context, batch []*semel.Message) error { return handQueue(ctx, d.pool, one, batch) }
	case HandleAll:
		return func(ctx context.Context, batch []*semel.Message) error { return handAll(ctx, d.pool, all, batch) }
	}
	return func(ctx context.Context, batch []*semel.Message) error { return handSQL(ctx, d.db, one, batch) }
}

func (d *database) textbook(c Conditions) batchFunc {
	effect := c.Effect.one()
	if c.Form == HandleSQL {
		return func(ctx context.Context, batch []*semel.Message) error {
			return textbookSQL(ctx, d.db, effect, batch[0])
		}
	}
	return func(ctx context.Context, batch []*semel.Message) error {
		return textbook(ctx, d.pool, effect, batch[0])
	}
}

// share gives batches to workers as they ask for them. A batch that the server
// ended to resolve a deadlock is done again.
func share(ctx context.Context, workers int, messages []*semel.Message, size int, do batchFunc) (outcome, error) {
	batches := slices.Collect(slices.Chunk(messages, size))
	var next, deadlocks atomic.Int64
	failures := make([]error, workers)
	var group worker.Group
	for w := range workers {
		group.Go(func() {
			for failures[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(batches) {
					return
				}
				failures[w] = untilCommitted(ctx, batches[i], do, &deadlocks)
			}
		})
	}
	group.Wait()
	return outcome{deadlocks: int(deadlocks.Load())}, errors.Join(failures...)
}

func untilCommitted(ctx context.Context, batch []*semel.Message, do batchFunc, deadlocks *atomic.Int64) error {
	for {
		err := do(ctx, batch)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "40P01" {
			return err
		}
		deadlocks.Add(1)
	}
}
