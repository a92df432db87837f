package workload

import (
	"context"
	"sync"

	"github.com/semel-go/semel/store"
)

// trusting is a store with a fault that fault tests must detect: it resolves an unknown commit by a plain lookup on
// another connection. If the lookup finds a marker, the message counts as committed. If the lookup finds no marker, the
// message counts as not committed: its handler runs again, and the marker is not checked again.
type trusting[Tx any] struct {
	store.TxStore[Tx]
	store.Inbox
	lookUp func(ctx context.Context, id []byte) (bool, error)

	mu     sync.Mutex
	absent map[string]bool // guarded by mu
}

// Begin passes the markers to write to the inner store, except markers that a lookup did not find. Messages without a
// found marker are reported as new.
func (s *trusting[Tx]) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[Tx], []store.Verdict, error) {
	b := &trustingBatch[Tx]{store: s, marks: marks, inner: make([]int, len(marks))}
	var asked []store.Mark
	s.mu.Lock()
	for i, m := range marks {
		b.inner[i] = -1
		if !s.absent[string(m.ID)] {
			b.inner[i] = len(asked)
			asked = append(asked, m)
		}
	}
	s.mu.Unlock()
	batch, answers, err := s.TxStore.Begin(ctx, o, asked)
	if err != nil {
		return nil, nil, err
	}
	b.Batch = batch
	b.verdicts = make([]store.Verdict, len(marks))
	for i, n := range b.inner {
		b.verdicts[i].Kind = store.Fresh
		if n >= 0 {
			b.verdicts[i] = answers[n]
		}
	}
	return b, append([]store.Verdict(nil), b.verdicts...), nil
}

type trustingBatch[Tx any] struct {
	store.Batch[Tx]
	store    *trusting[Tx]
	marks    []store.Mark
	inner    []int // index of each marker in the inner batch; -1 if the marker was not passed on
	verdicts []store.Verdict
}

func (b *trustingBatch[Tx]) Tx(int) Tx { return b.Batch.Tx(store.All) }

func (b *trustingBatch[Tx]) Commit(ctx context.Context, e store.Ending) store.Result {
	var trim []int
	for _, i := range e.Trim {
		if b.inner[i] >= 0 {
			trim = append(trim, b.inner[i])
		}
	}
	for i := range e.Rows {
		e.Rows[i].Mark = b.inner[e.Rows[i].Mark]
	}
	e.Trim = trim
	r := b.Batch.Commit(ctx, e)
	if r.Outcome == store.CommitUnknown {
		r.Outcome = b.resolve(ctx)
	}
	return r
}

// resolve reports a commit if the lookup finds all markers, and remembers the markers that the lookup does not find.
func (b *trustingBatch[Tx]) resolve(ctx context.Context) store.CommitOutcome {
	outcome := store.Committed
	for i, m := range b.marks {
		if b.verdicts[i].Kind != store.Fresh {
			continue
		}
		there, err := b.store.lookUp(ctx, m.ID)
		if err != nil {
			return store.CommitUnknown
		}
		if !there {
			outcome = store.NotCommitted
			b.store.mu.Lock()
			b.store.absent[string(m.ID)] = true
			b.store.mu.Unlock()
		}
	}
	return outcome
}
