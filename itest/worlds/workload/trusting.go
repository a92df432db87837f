package workload

import (
	"context"
	"sync"

	"github.com/semel-go/semel/store"
)

// trusting is the planted fault: it resolves an unknown commit by a plain
// look-up on another connection. What the look-up finds is committed; what it
// does not find is taken for not committed, and runs again without asking the
// marker once more.
type trusting[Tx any] struct {
	store.TxStore[Tx]
	store.Inbox
	lookUp func(ctx context.Context, id []byte) (bool, error)

	mu     sync.Mutex
	absent map[string]bool // guarded by mu
}

// Begin marks what no look-up has answered for; the rest is called fresh.
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
	inner    []int // by mark: its number below, -1 if it was not asked for
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

// resolve says that all was committed if all is there, and remembers what is
// not.
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
