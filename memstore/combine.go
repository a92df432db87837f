package memstore

import (
	"context"
	"fmt"
	"maps"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

var _ admin.QueueStore[*Tx] = (*Store)(nil)

// gathered records the changes of a claim's handler before the batch of the claim begins.
type gathered struct {
	*batch
	mark store.Mark
}

// Combinable implements admin.QueueStore. The commit fails if a value that the Tx of the batch has read was changed by
// another transaction.
func (s *Store) Combinable(m store.Mark) store.Batch[*Tx] { return &gathered{s.open(), m} }

// MayCombine implements admin.QueueStore. A batch whose handler wrote markers or received messages cannot be combined
// with other batches.
func (s *Store) MayCombine(b store.Batch[*Tx]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := b.(*gathered)
	return len(g.newMarkers)+len(g.receivedMessages) == 0
}

// ReceiveQueued implements admin.QueueStore. A Tx writes markers immediately, so ReceiveQueued calls the function judge
// before it returns.
func (s *Store) ReceiveQueued(tx *Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason, judge func([]store.Verdict) error) error {
	verdicts, err := s.ReceiveIn(context.Background(), tx, marks, messages, reason)
	if err != nil {
		return err
	}
	return judge(verdicts)
}

// Commit implements store.Batch.
func (g *gathered) Commit(ctx context.Context, e store.Ending) store.Result {
	return g.store.CommitCombined(ctx, store.TxOptions{}, []admin.QueuedBatch[*Tx]{{Batch: g, Ending: e}})
}

// CommitCombined implements admin.QueueStore.
func (s *Store) CommitCombined(ctx context.Context, o store.TxOptions, all []admin.QueuedBatch[*Tx]) store.Result {
	marks := make([]store.Mark, len(all))
	for i := range all {
		marks[i] = all[i].Batch.(*gathered).mark
	}
	opened, verdicts, err := s.Begin(ctx, o, marks)
	if err != nil {
		return refusedResult(store.ClassDown, err)
	}
	b := opened.(*batch)
	for i, v := range verdicts {
		switch v.Kind {
		case store.Fresh:
			continue
		case store.ClaimLost:
			err = store.ErrClaimLost
		default:
			err = fmt.Errorf("memstore: the claim is valid, but the verdict on its mark is %v", v)
		}
		b.Rollback(ctx)
		r := refusedResult(s.Classify(err), err)
		if v.Kind == store.ClaimLost {
			r.Class = store.ClassClaimLost
		} else {
			r.Culprit = i
		}
		return r
	}
	var e store.Ending
	for i := range all {
		if err := b.join(all[i].Batch.(*gathered)); err != nil {
			b.Rollback(ctx)
			return refusedResult(s.Classify(err), err)
		}
		for _, c := range all[i].Ending.Claims {
			c.Mark = i
			e.Claims = append(e.Claims, c)
		}
		for _, r := range all[i].Ending.Rows {
			r.Mark = i
			e.Rows = append(e.Rows, r)
		}
	}
	return b.Commit(ctx, e)
}

// join adds the changes of g to the batch. If another transaction has changed a value that g read, join
// returns an error.
func (b *batch) join(g *gathered) error {
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.ended {
		return errKilled
	}
	for key, version := range g.tx.reads {
		if c, changed := b.tx.changes[key]; changed && (c.replaced || c.delta != 0) {
			return errSerial
		}
		b.tx.read(key, version)
	}
	for key, c := range g.tx.changes {
		if !c.replaced {
			before := b.tx.changes[key]
			before.delta += c.delta
			c = before
		}
		b.tx.put(key, c)
	}
	if b.tx.results == nil {
		b.tx.results = map[identity][]byte{}
	}
	maps.Copy(b.tx.results, g.tx.results)
	for _, id := range g.newMarkers {
		m := s.markers[id]
		m.owner = b
		s.markers[id] = m
	}
	b.newMarkers, b.receivedMessages = append(b.newMarkers, g.newMarkers...), append(b.receivedMessages, g.receivedMessages...)
	g.newMarkers, g.receivedMessages = nil, nil
	return nil
}
