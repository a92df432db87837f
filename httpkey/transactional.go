package httpkey

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

// transactional stores keys for New: a key is marked in the transaction of its effect.
type transactional[Tx any] struct {
	guard   *Guard
	store   store.TxStore[Tx]
	results admin.Results[Tx]

	scope atomic.Int64 // 0 if the number is not known yet
}

// New returns a Guard for handlers that write their effects in the store's database, in the transaction that TxFrom
// returns. The error reports all faults of the configuration. The error wraps semel.ErrUnsupported if the store keeps
// no results, or if the store partitions its markers by a time that the keys of clients do not contain. New does not
// access the store.
func New[Tx any](st store.TxStore[Tx], c Config) (*Guard, error) {
	if st == nil {
		return nil, errors.New("httpkey: the store is nil; pass one that is open")
	}
	faults := []error{c.validate(false), c.validatePool(st)}
	t := &transactional[Tx]{guard: &Guard{config: c, handlers: c.handlerShares(), bodies: c.bodyShares()}, store: st}
	var keeps bool
	if t.results, keeps = st.(admin.Results[Tx]); !keeps {
		faults = append(faults, fmt.Errorf("the store cannot keep answers, because it stores no results: %w", semel.ErrUnsupported))
	}
	if kind := st.Limits().PartitionedBy; kind != "" {
		faults = append(faults, fmt.Errorf("the store keeps its markers by the time in their ids (%s), which the keys of clients do not contain; give the guard a table of its own: %w", kind, semel.ErrUnsupported))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("httpkey: %w", err)
	}
	t.guard.strategy = t
	return t.guard, nil
}

const (
	// The time for which a marker waits while another process is handling a request with the same key.
	markLock = 50 * time.Millisecond
	// The time for which a handler's statement waits for a row that another transaction has locked.
	effectLock = time.Second
	// storeTime is the timeout of a call of the store.
	storeTime = 10 * time.Second
	// idleGrace is added to the handler's timeout. If a transaction has no statement for this sum, the database server
	// ends the transaction, so that a frozen process does not block a key forever.
	idleGrace = storeTime
)

// attempt implements strategy.
func (t *transactional[Tx]) attempt(ctx context.Context, f *flight, q *request, next http.Handler) outcome {
	for until := time.Now().Add(t.guard.config.Wait); ; {
		b, o := t.begin(ctx, q)
		if b != nil {
			return t.handle(ctx, b, f, q, next)
		}
		if !o.isInFlight() || time.Until(until) < poll || !timing.Wait(q.http.Context(), poll) {
			return o
		}
	}
}

// mark returns the marker of a request.
func (t *transactional[Tx]) mark(q *request) store.Mark {
	return store.Mark{Scope: t.scope.Load(), ID: []byte(q.id()), Fingerprint: q.fingerprint, As: store.Applied}
}

// resultOf returns the key under which the answer to a request is kept.
func (t *transactional[Tx]) resultOf(q *request) admin.ResultOf {
	return admin.ResultOf{Scope: t.scope.Load(), ID: []byte(q.id())}
}

// intern gets the number under which the store keeps the guard's keys. intern asks the store only until the store has
// returned the number.
func (t *transactional[Tx]) intern(ctx context.Context) error {
	if t.scope.Load() != 0 {
		return nil
	}
	number, err := t.store.Scope(ctx, t.guard.config.Name, "", 0)
	if err == nil {
		t.scope.Store(number)
	}
	return err
}

// begin begins a transaction and marks the key in it. If the store has a marker of the key, begin returns the
// outcome of the request instead.
func (t *transactional[Tx]) begin(ctx context.Context, q *request) (store.Batch[Tx], outcome) {
	asking, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := t.intern(asking); err != nil {
		return nil, newRefusal(unavailableProblem(), err)
	}
	c := &t.guard.config
	o := store.TxOptions{
		MarkLock: markLock, EffectLock: min(effectLock, c.Timeout/2), Statement: c.Timeout, Answer: storeTime, Idle: c.Timeout + idleGrace, Consumer: c.Name,
	}
	b, verdicts, err := t.store.Begin(asking, o, []store.Mark{t.mark(q)})
	switch {
	case err != nil && t.store.Classify(err) == store.ClassContended: // another process is handling a request with the same key
		return nil, newRefusal(t.guard.inFlightProblem(retryAfter), nil)
	case err != nil:
		return nil, newRefusal(unavailableProblem(), err)
	}
	if verdicts[0].Kind == store.Fresh {
		return b, outcome{}
	}
	b.Rollback(asking)
	return nil, t.markerOutcome(asking, q, verdicts[0])
}

// markerOutcome returns the outcome of a request whose key already has a marker.
func (t *transactional[Tx]) markerOutcome(ctx context.Context, q *request, v store.Verdict) outcome {
	switch {
	case v.Kind == store.Conflict:
		return newRefusal(t.guard.mismatchProblem(), nil)
	case v.Kind == store.Busy:
		return newRefusal(t.guard.inFlightProblem(retryAfter), nil)
	case v.Already(store.Applied):
		results, err := t.results.Results(ctx, []admin.ResultOf{t.resultOf(q)})
		if err != nil {
			return newRefusal(unavailableProblem(), err)
		}
		return t.guard.replayStored(results[0])
	case v.Kind == store.Newer:
		return newRefusal(newProblem(http.StatusServiceUnavailable, codeNewer, "another server of this API can", retryAfter), errNewer)
	}
	return newRefusal(newProblem(http.StatusConflict, codeUnsure, "the request was parked", 0), fmt.Errorf("httpkey: the key is %v", v))
}

// handle runs the handler in the transaction, and ends the transaction.
func (t *transactional[Tx]) handle(ctx context.Context, b store.Batch[Tx], f *flight, q *request, next http.Handler) outcome {
	over := false
	defer func() {
		if !over { // the handler ended its goroutine
			b.Kill()
			b.Rollback(ctx) // releases the connection
		}
	}()
	r := t.runIn(ctx, b, f, q, next)
	over = true
	ending, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	switch {
	case r.rule == ReleaseKey || errors.Is(r.err, ErrAnswerTooLarge):
		b.Rollback(ending)
		return r.outcome
	case r.answer.status < 400:
		return t.commit(ending, b, q, r.outcome)
	}
	b.Rollback(ending) // the answer is kept, and the effect is rolled back
	b, o := t.begin(ctx, q)
	if b == nil {
		return o
	}
	return t.commit(ending, b, q, r.outcome)
}

func (t *transactional[Tx]) runIn(ctx context.Context, b store.Batch[Tx], f *flight, q *request, next http.Handler) runResult {
	ctx, cancel := context.WithTimeout(ctx, t.guard.config.Timeout)
	defer cancel()
	ctx = context.WithValue(ctx, txKey{}, b.Tx(0))
	return t.guard.run(ctx, f, q, next, Attempt{IdempotencyKey: t.guard.idempotencyKey(q), Number: 1}, b.Kill)
}

// commit writes the answer, and commits answer, key and the handler's effect in one transaction.
func (t *transactional[Tx]) commit(ctx context.Context, b store.Batch[Tx], q *request, o outcome) outcome {
	if broken, able := b.(store.TxStatus); able && broken.TxAborted() {
		o := t.abortedOutcome(b)
		b.Rollback(ctx)
		return o
	}
	kept, err := o.answer.encode(t.guard.config.Headers)
	if err != nil {
		b.Rollback(ctx)
		return t.guard.failRun(newProblem(http.StatusInternalServerError, codeAnswer, "its headers have too many bytes", 0), err).outcome
	}
	if end, able := b.(admin.CommitResultWriter); able {
		end.WriteResultAtCommit(t.resultOf(q), kept)
	} else if err := t.results.KeepResult(ctx, b.Tx(0), t.resultOf(q), kept); err != nil {
		b.Rollback(ctx)
		return t.rollbackOutcome(t.store.Classify(err), err)
	}
	committing, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.commitTime(b))
	defer cancel()
	switch r := b.Commit(committing, store.Ending{}); r.Outcome {
	case store.Committed:
		o.stored = true
		return o
	case store.NotCommitted:
		return t.rollbackOutcome(r.Class, r.Err)
	default:
		return t.resolve(context.WithoutCancel(ctx), q, r.Err)
	}
}

// commitTime returns how long a commit may take, including the statements that the handler queued.
func (t *transactional[Tx]) commitTime(b store.Batch[Tx]) time.Duration {
	q, queues := b.(admin.QueuedStatements)
	if !queues {
		return storeTime
	}
	return storeTime + t.guard.config.Timeout*time.Duration(min(q.Queued(), mostQueued))
}

// mostQueued is the maximum number of queued statements that commitTime takes into account.
const mostQueued = 1000

var errBroken = errors.New("httpkey: a statement of the handler failed, but the handler answered with success; its writes were rolled back")

// abortedOutcome returns the outcome of a request whose handler answered but whose transaction cannot commit.
func (t *transactional[Tx]) abortedOutcome(b store.Batch[Tx]) outcome {
	if tells, able := b.(store.TxStatus); able {
		if by := tells.AbortCause(); by != nil { // after a lock timeout or a lost connection, a repeated request may succeed
			return t.rollbackOutcome(t.store.Classify(by), fmt.Errorf("%w: %w", errBroken, by))
		}
	}
	return t.rollbackOutcome(store.ClassAborted, errBroken)
}

// rollbackOutcome returns the outcome of a request whose transaction was rolled back.
func (t *transactional[Tx]) rollbackOutcome(class store.Class, err error) outcome {
	if class == store.ClassDown || class == store.ClassContended {
		return newRefusal(newProblem(http.StatusServiceUnavailable, codeCommit, "nothing was done; repeat the request with the same key", retryAfter), err)
	}
	return newRefusal(newProblem(http.StatusInternalServerError, codeCommit, "nothing was done", 0), err)
}

// resolve finds out whether a commit succeeded whose response was lost. resolve writes the marker of the key again. If
// the first transaction still runs, the second marker waits for the end of that transaction.
func (t *transactional[Tx]) resolve(ctx context.Context, q *request, lost error) outcome {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	for {
		b, o := t.begin(ctx, q)
		if b != nil { // the first transaction was not committed, and will not be
			b.Rollback(ctx)
			return t.rollbackOutcome(store.ClassDown, lost)
		}
		busy := o.isInFlight() || o.problem != nil && o.problem.code == codeUnavailable
		switch {
		case !busy:
			o.err = errors.Join(o.err, lost)
			return o
		case !timing.Wait(ctx, poll):
			return newRefusal(newProblem(http.StatusServiceUnavailable, codeNotRecorded, "repeat the request with the same key", retryAfter), errors.Join(o.err, lost))
		}
	}
}
