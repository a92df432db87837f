package bench

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/worker"
)

// Contestant is an implementation that applies messages.
type Contestant string

// The implementations that are compared. Hand is the hand-written batch, and Again is a second run of Hand. Keys is
// Semel with lanes by key, where the key is the database row that a message changes.
const (
	Semel    Contestant = "semel"
	Keys     Contestant = "keys"
	Hand     Contestant = "hand"
	Again    Contestant = "again"
	Textbook Contestant = "textbook"
)

// apply applies the messages with the implementation who, and returns when all messages are committed. After the time
// limit, implementations other than Semel begin no further batch. A limit of zero means no limit.
func (d *database) apply(ctx context.Context, who Contestant, c Conditions, messages []*semel.Message, limit time.Duration) (outcome, error) {
	switch who {
	case Semel:
		return d.applySemel(ctx, c, messages, consumer.LanesNone)
	case Keys:
		return d.applySemel(ctx, c, messages, consumer.LanesKey)
	case Textbook:
		return share(ctx, c.Workers, slices.Chunk(messages, 1), d.textbook(c), limit)
	}
	return share(ctx, c.Workers, slices.Chunk(messages, batchMost), d.hand(c), limit)
}

// batchFunc applies a batch in one transaction.
type batchFunc func(context.Context, []*semel.Message) error

func (d *database) hand(c Conditions) batchFunc {
	one, all := c.Effect.singleStatement(), c.Effect.batchStatement()
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
	effect := c.Effect.singleStatement()
	if c.Form == HandleSQL {
		return func(ctx context.Context, batch []*semel.Message) error {
			return textbookSQL(ctx, d.db, effect, batch[0])
		}
	}
	return func(ctx context.Context, batch []*semel.Message) error {
		return textbook(ctx, d.pool, effect, batch[0])
	}
}

// batchQueue gives the next batch to any worker that is free.
type batchQueue struct {
	do        batchFunc
	batches   [][]*semel.Message
	until     time.Time
	next      atomic.Int64
	applied   atomic.Int64
	deadlocks atomic.Int64
}

func share(ctx context.Context, workers int, batches iter.Seq[[]*semel.Message], do batchFunc, limit time.Duration) (outcome, error) {
	s := &batchQueue{do: do, batches: slices.Collect(batches)}
	if limit > 0 {
		s.until = time.Now().Add(limit)
	}
	failures := make([]error, workers)
	var group worker.Group
	for w := range workers {
		group.Go(func() { failures[w] = s.work(ctx) })
	}
	group.Wait()
	return outcome{applied: int(s.applied.Load()), deadlocks: int(s.deadlocks.Load())}, errors.Join(failures...)
}

// work applies batches until none is left. If the server has aborted a batch because of a deadlock, work
// applies this batch again.
func (s *batchQueue) work(ctx context.Context) error {
	for !s.isOver() {
		i := int(s.next.Add(1)) - 1
		if i >= len(s.batches) {
			return nil
		}
		err := s.do(ctx, s.batches[i])
		for isDeadlock(err) {
			s.deadlocks.Add(1)
			if s.isOver() {
				return nil
			}
			err = s.do(ctx, s.batches[i])
		}
		if err != nil {
			return err
		}
		s.applied.Add(int64(len(s.batches[i])))
	}
	return nil
}

func (s *batchQueue) isOver() bool { return !s.until.IsZero() && time.Now().After(s.until) }

func isDeadlock(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "40P01"
}
