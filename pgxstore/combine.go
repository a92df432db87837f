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

// gathered collects the statements of the handler for one claimed row while no transaction is open.
type gathered struct {
	store    *QueuedStore
	mark     store.Mark
	requests []*request
	queues   []*Queue // the handler's Queues
	reads    bool     // true if a callback reads rows
	ends     bool     // true if the handler tried to end the transaction
	begins   func(mark int) (ended func())

	mutex  sync.Mutex
	killed bool    // guarded by mutex
	in     *shared // the transaction that commits the claim; guarded by mutex
}

// shared is a transaction for several claims. The transaction is killed only when all claims in it are killed, because
// the other claims must continue if one claim is killed.
type shared struct {
	batch *queued
	alive atomic.Int32
}

func (s *shared) leave() {
	if s.alive.Add(-1) == 0 {
		s.batch.Kill()
	}
}

// join sets the transaction that commits the claim.
func (g *gathered) join(s *shared) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.in = s; g.killed {
		s.leave()
	}
}

// Combinable implements admin.QueueStore.
func (s *QueuedStore) Combinable(m store.Mark) store.Batch[*Queue] {
	return &gathered{store: s, mark: m}
}

// CommitCombined implements admin.QueueStore.
func (s *QueuedStore) CommitCombined(ctx context.Context, o store.TxOptions, all []admin.QueuedBatch[*Queue]) store.Result {
	marks := make([]store.Mark, len(all))
	for i := range all {
		marks[i] = all[i].Batch.(*gathered).mark
	}
	opened, verdicts, err := s.direct.open(ctx, o, marks, false)
	if err != nil {
		class := s.Classify(err)
		if class != store.ClassContended {
			class = store.ClassDown // no message caused the error
		}
		return store.Result{Outcome: store.NotCommitted, Class: class, Culprit: store.NoCulprit, Err: err}
	}
	b := &queued{batch: opened}
	for i, v := range verdicts {
		if v.Kind != store.Fresh {
			b.Rollback(ctx)
			return unfit(i, v)
		}
	}
	var e store.Ending
	together := &shared{batch: b}
	together.alive.Store(int32(len(all)))
	for i := range all {
		one := all[i].Batch.(*gathered)
		one.replay(b, i)
		one.join(together)
		e = joined(e, all[i].Ending, i)
	}
	return b.Commit(ctx, e)
}

// The function unfit returns the result for a transaction in which the claim with the index i is not valid.
func unfit(i int, v store.Verdict) store.Result {
	r := store.Result{Outcome: store.NotCommitted, Class: store.ClassRetry, Culprit: i, Err: fmt.Errorf("pgxstore: the claim is valid, but its transaction answered %v", v)}
	if v.Kind == store.ClaimLost {
		r.Class, r.Culprit, r.Err = store.ClassClaimLost, store.NoCulprit, store.ErrClaimLost
	}
	return r
}

// The function joined appends the results of a batch with a single message (the parameter one) to the results of a
// common batch (the parameter all). The message gets the index i.
func joined(all, one store.Ending, i int) store.Ending {
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
func (g *gathered) replay(b *queued, i int) {
	for _, q := range g.queues {
		q.to, q.mark = b, i
	}
	for _, r := range g.requests {
		b.take(i, &request{sql: r.sql, args: slices.Clone(r.args), read: r.read, one: r.one, unmet: r.unmet, text: r.text, kept: r.kept})
	}
	if g.reads {
		b.reads = true
	}
	if g.begins != nil {
		b.begins = g.begins
	}
}

// take implements queueing.
func (g *gathered) take(_ int, r *request) {
	g.ends = g.ends || sqltext.Postgres().Ends(r.sql)
	g.requests = append(g.requests, r)
}

// err implements queueing.
func (g *gathered) err() error {
	if g.ends {
		return errEnded
	}
	return nil
}

// willRead implements queueing.
func (g *gathered) willRead() { g.reads = true }

// call implements queueing. The method reads no rows, because only the batch that sends the statements reads rows.
func (g *gathered) call(int, func(pgx.Rows) error, pgx.Rows) error { return errEnded }

// MayCombine implements admin.QueueStore.
func (s *QueuedStore) MayCombine(b store.Batch[*Queue]) bool { return !b.(*gathered).reads }

// Tx implements store.Batch.
func (g *gathered) Tx(int) *Queue {
	q := &Queue{to: g}
	g.queues = append(g.queues, q)
	return q
}

// Commit implements store.Batch.
func (g *gathered) Commit(ctx context.Context, e store.Ending) store.Result {
	return g.store.CommitCombined(ctx, store.TxOptions{}, []admin.QueuedBatch[*Queue]{{Batch: g, Ending: e}})
}

// Rollback implements store.Batch.
func (g *gathered) Rollback(context.Context) {}

// Kill implements store.Batch.
func (g *gathered) Kill() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if !g.killed && g.in != nil {
		g.in.leave()
	}
	g.killed = true
}

// Queued implements admin.QueuedStatements.
func (g *gathered) Queued() int { return len(g.requests) }

// OnCallback implements admin.QueuedStatements.
func (g *gathered) OnCallback(begin func(mark int) (ended func())) { g.begins = begin }

// TxAborted implements store.TxStatus.
func (g *gathered) TxAborted() bool { return g.ends }

// AbortCause implements store.TxStatus.
func (g *gathered) AbortCause() error { return g.err() }

// ClassifyHandler implements store.TxStatus. No statement has been sent, so the error comes from the handler.
func (g *gathered) ClassifyHandler(_ context.Context, err error) store.Class {
	if g.ends {
		return store.ClassPermanent
	}
	return store.ClassRetry
}
