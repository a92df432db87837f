package handlertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// point is a point between fetch and ack at which a subtest causes a fault.
type point string

// The points at which a subtest can cause a fault, in the order in which a message passes them.
const (
	nowhere      point = ""
	atBegin      point = "before the transaction begins"
	atMark       point = "after the mark"
	beforeHandle point = "before the handler"
	afterHandle  point = "after the handler"
	atCut        point = "connection cut before COMMIT"
	atCommit     point = "before COMMIT"
	atReply      point = "after COMMIT, with the reply lost"
	beforeAck    point = "after COMMIT, before the ack"
	// inReceipt is the transaction that stores a message in the inbox. No crash begins there, because no part of the
	// handler runs.
	inReceipt point = "in the receipt"
)

// errCrashed is the error of every call of a store whose process has crashed.
var errCrashed = errors.New("semeltest: the process has crashed")

// plan describes the faults of the next transactions in a test world. A plan is safe for concurrent use.
type plan struct {
	mu    sync.Mutex // guards all fields
	crash point
	// skip is the number of times that the point is passed before the crash.
	skip int
	dead bool
	// onCrash, if not nil, is called when the process crashes.
	onCrash func()
	// kill, if not nil, is called at the point of the crash and ends the current process.
	kill func()
	// recovers is true if the process does not crash: only one call fails.
	recovers bool
	// expired is true if the store must answer that new messages are older than its markers.
	expired bool
	// aborted is the reason why a transaction could not commit although its handler returned nil.
	aborted error
}

func (p *plan) set(f func(p *plan)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// crashAt returns errCrashed if the process crashes at the given point, or has crashed before.
func (p *plan) crashAt(here point) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errCrashed
	}
	if p.crash != here {
		return nil
	}
	if p.skip > 0 {
		p.skip--
		return nil
	}
	if p.kill != nil {
		p.kill()
	}
	p.crash, p.dead = nowhere, !p.recovers
	if p.dead && p.onCrash != nil {
		p.onCrash()
	}
	return errCrashed
}

func (p *plan) crashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// extras are the optional interfaces of Semel's own stores that this package needs.
type extras[Tx any] interface {
	store.Inbox
	store.Leases
	admin.Requeuer
	admin.Streams
	admin.Results[Tx]
}

// basic is a store that crashes as its plan says. The names of consumers get a suffix, so that each test world begins
// without markers even if the store is not empty.
type basic[Tx any] struct {
	store.TxStore[Tx]
	plan   *plan
	suffix string
}

func (s *basic[Tx]) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	if err := s.plan.crashAt(inReceipt); err != nil {
		return 0, err
	}
	return s.TxStore.Scope(ctx, consumer+s.suffix, source, generation)
}

func (s *basic[Tx]) Classify(err error) store.Class {
	if errors.Is(err, errCrashed) {
		return store.ClassDown
	}
	return s.TxStore.Classify(err)
}

func (s *basic[Tx]) IsStoreFault(err error) bool {
	return errors.Is(err, errCrashed) || s.TxStore.IsStoreFault(err)
}

func (s *basic[Tx]) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[Tx], []store.Verdict, error) {
	begin, mark := atBegin, atMark
	receipt := slices.ContainsFunc(marks, func(m store.Mark) bool { return m.As == store.Waiting && m.Claim.Token == 0 })
	if receipt {
		begin, mark = inReceipt, inReceipt
	}
	if err := s.plan.crashAt(begin); err != nil {
		return nil, nil, err
	}
	marks = slices.Clone(marks)
	for i := range marks {
		marks[i].Consumer += s.suffix
	}
	b, verdicts, err := s.TxStore.Begin(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	if err := s.plan.crashAt(mark); err != nil {
		b.Rollback(ctx)
		return nil, nil, err
	}
	s.plan.set(func(p *plan) {
		for i := range verdicts {
			if p.expired && verdicts[i].Kind == store.Fresh && marks[i].Asks() {
				verdicts[i] = store.Verdict{Kind: store.Old}
			}
		}
	})
	if receipt {
		return b, verdicts, nil
	}
	return s.batch(b), verdicts, nil
}

// batch wraps b. The result has those optional interfaces of b that the consumer uses.
func (s *basic[Tx]) batch(b store.Batch[Tx]) store.Batch[Tx] {
	made := batch[Tx]{b, s}
	status, knows := b.(store.TxStatus)
	queue, queues := b.(admin.QueuedStatements)
	switch {
	case knows && queues:
		return &struct {
			statusBatch[Tx]
			admin.QueuedStatements
		}{statusBatch[Tx]{made, status}, queue}
	case knows:
		return &statusBatch[Tx]{made, status}
	}
	return &made
}

type batch[Tx any] struct {
	store.Batch[Tx]
	store *basic[Tx]
}

func (b *batch[Tx]) Commit(ctx context.Context, e store.Ending) store.Result {
	if err := b.store.plan.crashAt(atCommit); err != nil {
		b.Batch.Rollback(ctx)
		return store.Result{Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	if b.store.plan.crashAt(atCut) != nil {
		b.Batch.Kill()
	}
	r := b.Batch.Commit(ctx, e)
	if err := b.store.plan.crashAt(atReply); err != nil && r.Outcome == store.Committed {
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	if r.Outcome == store.Committed {
		_ = b.store.plan.crashAt(beforeAck) // from here on the process gets no answer of the store
	}
	return r
}

type statusBatch[Tx any] struct {
	batch[Tx]
	store.TxStatus
}

func (b *statusBatch[Tx]) TxAborted() bool {
	aborted := b.TxStatus.TxAborted()
	if aborted {
		cause := b.TxStatus.AbortCause()
		b.store.plan.set(func(p *plan) { p.aborted = errors.Join(errAborted, cause) })
	}
	return aborted
}

var errAborted = errors.New("its transaction can no longer commit")

func (b *statusBatch[Tx]) ClassifyHandler(ctx context.Context, err error) store.Class {
	if errors.Is(err, errCrashed) {
		return store.ClassDown
	}
	return b.TxStatus.ClassifyHandler(ctx, err)
}

// wrap returns a store that passes calls to st and causes the faults of the plan. The result rows is true if st has an
// inbox.
func wrap[Tx any](st store.TxStore[Tx], p *plan, suffix string) (wrapped store.TxStore[Tx], rows bool) {
	made := &basic[Tx]{st, p, suffix}
	extra, able := st.(extras[Tx])
	if !able {
		return made, false
	}
	return &withInbox[Tx]{made, extra}, true
}

// withInbox does the same as basic, for a store that has an inbox.
type withInbox[Tx any] struct {
	*basic[Tx]
	extras[Tx]
}

func (s *withInbox[Tx]) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
	f.Consumer += s.suffix
	rows, err := s.extras.Rows(ctx, f)
	for i := range rows {
		s.rename(&rows[i])
	}
	return rows, err
}

func (s *withInbox[Tx]) Pending(ctx context.Context, consumer string) (store.Pending, error) {
	return s.extras.Pending(ctx, consumer+s.suffix)
}

func (s *withInbox[Tx]) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	o.Consumer += s.suffix
	return s.renamed(s.extras.Claim(ctx, o))
}

func (s *withInbox[Tx]) Held(ctx context.Context, consumer string, t store.Token) ([]store.Claimed, error) {
	return s.renamed(s.extras.Held(ctx, consumer+s.suffix, t))
}

func (s *withInbox[Tx]) renamed(claimed []store.Claimed, err error) ([]store.Claimed, error) {
	for i := range claimed {
		s.rename(&claimed[i].Row)
	}
	return claimed, err
}

func (s *withInbox[Tx]) rename(r *store.StoredRow) {
	r.Key.Consumer = strings.TrimSuffix(r.Key.Consumer, s.suffix)
}
