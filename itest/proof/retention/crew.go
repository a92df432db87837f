package retention

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// crew has the workers and their counts.
type crew struct {
	run *run

	mutex   sync.Mutex // mutex guards the fields below
	applied int        // number of new messages that were applied
	copies  int        // number of copies of messages that were applied before
	late    int        // number of copies of messages whose markers were removed
	wrong   int        // number of late copies that took effect
	took    []time.Duration
	failed  error
}

const (
	batchOf  = 200 // number of new messages in a batch
	lateOf   = 5   // number of copies of old messages in a batch
	repeatOf = 5   // number of copies of new messages in a batch
)

func (c *crew) count() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.applied
}

// rate returns the messages applied per second during the time d.
func (c *crew) rate(ctx context.Context, d time.Duration) float64 {
	from, began := c.count(), time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return float64(c.count()-from) / time.Since(began).Seconds()
}

// work applies batches until ctx ends.
func (c *crew) work(ctx context.Context, random *rand.Rand) {
	var before []store.Mark
	for ctx.Err() == nil {
		marks := c.batch(random, before)
		began := time.Now()
		if err := c.apply(context.WithoutCancel(ctx), marks); err != nil {
			c.mutex.Lock()
			c.failed = err
			c.mutex.Unlock()
			return
		}
		before = marks[:repeatOf]
		c.mutex.Lock()
		c.took = append(c.took, time.Since(began))
		c.mutex.Unlock()
	}
}

// batch returns the markers to write for new messages, and for duplicates of some messages of the previous batch and of
// some old messages.
func (c *crew) batch(random *rand.Rand, before []store.Mark) []store.Mark {
	marks := make([]store.Mark, 0, batchOf+lateOf+repeatOf)
	now := time.Now()
	for range batchOf {
		marks = append(marks, c.mark(newID(now, random), now))
	}
	marks = append(marks, before...)
	for range lateOf {
		n := 1 + random.IntN(c.run.Markers)
		marks = append(marks, c.mark(c.run.oldID(n), c.run.oldTime(n)))
	}
	return marks
}

func (c *crew) mark(id string, at time.Time) store.Mark {
	if c.run.Blind {
		at = time.Time{}
	}
	return store.Mark{Scope: c.run.scope, ID: []byte(id), As: store.Applied, Age: at}
}

// newID returns a UUID of version 7.
func newID(at time.Time, random *rand.Rand) string {
	ms := fmt.Sprintf("%012x", at.UnixMilli())
	return fmt.Sprintf("%s-%s-7%03x-8%03x-%012x", ms[:8], ms[8:], random.IntN(1<<12), random.IntN(1<<12), random.Int64N(1<<48))
}

// apply processes a batch in the same way as the engine.
func (c *crew) apply(ctx context.Context, marks []store.Mark) error {
	b, verdicts, err := c.run.store.Queued().Begin(ctx, store.TxOptions{MarkLock: 10 * time.Second}, marks)
	if err != nil && c.run.store.Classify(err) == store.ClassContended {
		return nil // the marker of a copy was removed between two statements; the next batch has other copies
	}
	if err != nil {
		return err
	}
	var e store.Ending
	applied, copies, late, wrong := 0, 0, 0, 0
	for i, v := range verdicts {
		switch v.Kind {
		case store.Fresh:
			applied++
			if i >= len(marks)-lateOf {
				wrong++
			}
			write(b.Tx(i), string(marks[i].ID))
		case store.Old:
			late++
			e.Trim = append(e.Trim, i)
		default:
			copies++
		}
	}
	if r := b.Commit(ctx, e); r.Outcome != store.Committed {
		return fmt.Errorf("a batch: %v, %w", r.Outcome, r.Err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.applied, c.copies, c.late, c.wrong = c.applied+applied, c.copies+copies, c.late+late, c.wrong+wrong
	return nil
}

func write(q *pgxstore.Queue, id string) { q.Exec("insert into effects values ($1)", id) }
