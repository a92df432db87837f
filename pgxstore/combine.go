package pgxstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

var _ admin.QueueStore[*Queue] = (*QueuedStore)(nil)

// gatheredBatch collects the statements of the handler for one claimed row while no transaction is open.
type gatheredBatch struct {
	store    *QueuedStore
	mark     store.Mark
	requests []*request
	queues   []*Queue // the Queues that the handler got
	reads    bool     // true if a callback reads rows
	ends     bool     // true if the handler tried to end the transaction
	begins   func(mark int) (ended func())

	mutex       sync.Mutex
	killed      bool               // guarded by mutex
	transaction *sharedTransaction // the transaction that commits the claim; guarded by mutex
}

// sharedTransaction is a transaction for several claims. If one claim is killed, the other claims must continue. So the
// transaction is killed only when all its claims are killed.
type sharedTransaction struct {
	batch *queuedBatch
	alive atomic.Int32
}

func (s *sharedTransaction) leave() {
	if s.alive.Add(-1) == 0 {
		s.batch.Kill()
	}
}

// join sets the transaction that commits the claim.
func (g *gatheredBatch) join(s *sharedTransaction) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.transaction = s; g.killed {
		s.leave()
	}
}

// Combinable implements admin.QueueStore.
func (s *QueuedStore) Combinable(m store.Mark) store.Batch[*Queue] {
	return &gatheredBatch{store: s, mark: m}
}

// CommitCombined implements admin.QueueStore.
func (s *QueuedStore) CommitCombined(ctx context.Context, o store.TxOptions, all []admin.QueuedBatch[*Queue]) store.Result {
	marks := make([]store.Mark, len(all))
	for i := range all {
		marks[i] = all[i].Batch.(*gatheredBatch).mark
	}
	opened, verdicts, err := s.direct.beginBatch(ctx, o, marks, false)
	if err != nil {
		class := s.Classify(err)
		if class != store.ClassContended {
			class = store.ClassDown // no message caused the error
		}
		return store.Result{Outcome: store.NotCommitted, Class: class, Culprit: store.NoCulprit, Err: err}
	}
	b := &queuedBatch{batch: opened}
	for i, v := range verdicts {
		if v.Kind != store.Fresh {
			b.Rollback(ctx)
			return invalidClaimResult(i, v)
		}
	}
	var e store.Ending
	together := &sharedTransaction{batch: b}
	together.alive.Store(int32(len(all)))
	for i := range all {
		one := all[i].Batch.(*gatheredBatch)
		one.replay(b, i)
		one.join(together)
		e = appendEnding(e, all[i].Ending, i)
	}
	return b.Commit(ctx, e)
}

// invalidClaimResult returns the result for a transaction in which the claim with the index i is not valid.
func invalidClaimResult(i int, v store.Verdict) store.Result {
	r := store.Result{Outcome: store.NotCommitted, Class: store.ClassRetry, Culprit: i, Err: fmt.Errorf("pgxstore: the claim is valid, but its transaction answered %v", v)}
	if v.Kind == store.ClaimLost {
		r.Class, r.Culprit, r.Err = store.ClassClaimLost, store.NoCulprit, store.ErrClaimLost
	}
	return r
}

// appendEnding appends the ending of a batch with a single message (the parameter one) to the ending of a common batch
// (the parameter all). In the common batch, the message has the index i.
func appendEnding(all, one store.Ending, i int) store.Ending {
	for range one.Trim {
		all.Trim = append(all.Trim, i)
	}
	for _, r := range one.Rows {
		r.Mark = i
		all.Rows = append(all.Rows, r)
	}
	for _, c := range one.Claims {
		c.Mark = i
		all.Claims = append(all.Claims, c)
	}
	return all
}

// replay queues the collected statements in a batch, as statements of the message with the index i.
func (g *gatheredBatch) replay(b *queuedBatch, i int) {
	for _, q := range g.queues {
		q.to, q.mark = b, i
	}
	for _, r := range g.requests {
		b.take(i, &request{sql: r.sql, args: slices.Clone(r.args), read: r.read, oneRow: r.oneRow, unmet: r.unmet, text: r.text, checkedTable: r.checkedTable})
	}
	if g.reads {
		b.reads = true
	}
	if g.begins != nil {
		b.begins = g.begins
	}
}

// take implements queueing.
func (g *gatheredBatch) take(_ int, r *request) {
	g.ends = g.ends || sqltext.Postgres().Ends(r.sql)
	g.requests = append(g.requests, r)
}

// err implements queueing.
func (g *gatheredBatch) err() error {
	if g.ends {
		return errEnded
	}
	return nil
}

// announceRead implements queueing.
func (g *gatheredBatch) announceRead() { g.reads = true }

// call implements queueing. The method reads no rows, because only the batch that sends the statements reads rows.
func (g *gatheredBatch) call(int, func(pgx.Rows) error, pgx.Rows) error { return errEnded }

// MayCombine implements admin.QueueStore.
func (s *QueuedStore) MayCombine(b store.Batch[*Queue]) bool { return !b.(*gatheredBatch).reads }

// Tx implements store.Batch.
func (g *gatheredBatch) Tx(int) *Queue {
	q := &Queue{to: g}
	g.queues = append(g.queues, q)
	return q
}

// Commit implements store.Batch.
func (g *gatheredBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	return g.store.CommitCombined(ctx, store.TxOptions{}, []admin.QueuedBatch[*Queue]{{Batch: g, Ending: e}})
}

// Rollback implements store.Batch.
func (g *gatheredBatch) Rollback(context.Context) {}

// Kill implements store.Batch.
func (g *gatheredBatch) Kill() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if !g.killed && g.transaction != nil {
		g.transaction.leave()
	}
	g.killed = true
}

// Queued implements admin.QueuedStatements.
func (g *gatheredBatch) Queued() int { return len(g.requests) }

// OnCallback implements admin.QueuedStatements.
func (g *gatheredBatch) OnCallback(begin func(mark int) (ended func())) { g.begins = begin }

// TxAborted implements store.TxStatus.
func (g *gatheredBatch) TxAborted() bool { return g.ends }

// AbortCause implements store.TxStatus.
func (g *gatheredBatch) AbortCause() error { return g.err() }

// ClassifyHandler implements store.TxStatus. No statement has been sent, so the error comes from the handler.
func (g *gatheredBatch) ClassifyHandler(_ context.Context, err error) store.Class {
	if g.ends {
		return store.ClassPermanent
	}
	return store.ClassRetry
}
