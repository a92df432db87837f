package httpkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/store"
)

// LeaseConfig configures handlers whose effects are outside of the store. Window is required.
type LeaseConfig struct {
	// Window is how long the systems that the handler calls remember Attempt.IdempotencyKey after the first
	// attempt. Within Window an attempt with an unknown outcome is repeated. After Window the request gets
	// the code "outcome-unknown" until Resolve is called. leasedkey.Always means that the systems never
	// forget a key. leasedkey.Never means that no attempt that may have had an effect is repeated.
	Window time.Duration
	// Lease is the time for which the key of a dead process blocks other processes; default one minute. The lease is
	// extended while the handler runs.
	Lease time.Duration
	// AllowVolatile is the reason why it is acceptable that the store loses keys and that handlers then run
	// twice. If AllowVolatile is empty, a store that is volatile or of unknown durability is rejected.
	AllowVolatile string
	// FailOpen is the reason why handlers may run unprotected while the store is down. If FailOpen is empty,
	// requests get 503 while the store is down.
	FailOpen string
	// Stepped declares that handlers make all calls in steps (see Step). With Stepped, Window applies to each step. A
	// request with an unknown outcome always runs again, because completed steps are not repeated.
	Stepped bool
	// Completion, if not nil, allows a Completer to finish abandoned requests. With Completion, the store must be able
	// to store requests (admin.RequestStore), like the SQL stores and the memory store.
	Completion *Completion
}

// leased stores keys for NewLeased.
type leased struct {
	guard  *Guard
	store  keystore.Store
	keys   *leasedkey.Keys
	steps  *leasedkey.Keys // nil if handlers have no steps
	notes  admin.RequestStore
	config LeaseConfig
}

// NewLeased returns a Guard for handlers with effects outside of the store. The error reports all
// faults of the configuration. NewLeased does not access the store.
func NewLeased(st keystore.Store, c Config, l LeaseConfig) (*Guard, error) {
	given, notes, faults := st, l.requestStore(st), []error{c.validate(true)}
	c.MostOpen = cmp.Or(c.MostOpen, defaultLeased)
	faults = append(faults, l.validate(&c, notes != nil))
	if notes != nil {
		st = retryingRequestStore{retryingStore{st}, notes}
	} else if st != nil {
		st = retryingStore{st}
	}
	of := leasedkey.Config{Consumer: c.Name, Keep: c.Keep, Window: l.Window, Lease: l.Lease, Timeout: c.Timeout, AllowVolatile: l.AllowVolatile}
	keys, err := leasedkey.New(st, of)
	d := &leased{store: given, keys: keys, notes: notes, config: l}
	if err == nil && l.Stepped {
		d.steps, of.Window = keys, leasedkey.Always
		d.keys, err = leasedkey.New(st, of)
	}
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("httpkey: %w", err)
	}
	d.guard = &Guard{config: c, handlers: c.handlerShares(), bodies: c.bodyShares(), completion: l.Completion, strategy: d}
	return d.guard, nil
}

// poll is the interval at which a repeated request asks the store for the answer of another process.
const poll = 200 * time.Millisecond

// attempt implements strategy.
func (l *leased) attempt(ctx context.Context, f *flight, q *request, next http.Handler) outcome {
	for until := time.Now().Add(l.guard.config.Wait); ; {
		o := l.attemptOnce(ctx, f, q, next)
		if !o.isInFlight() || q.finishing || time.Until(until) < poll || !timing.Wait(q.http.Context(), poll) {
			return o
		}
	}
}

// errDoubt is the error of an attempt with an unknown outcome.
var errDoubt = errors.New("httpkey: the handler did not say what it did")

func (l *leased) attemptOnce(ctx context.Context, f *flight, q *request, next http.Handler) outcome {
	var r runResult
	asked := leasedkey.Request{Source: q.caller, ID: q.key, Fingerprint: q.fingerprint, Note: q.note, Seen: q.claims}
	a, err := l.keys.Do(ctx, asked, func(ctx context.Context, at leasedkey.Attempt) ([]byte, error) {
		steps := &steps{keys: l.steps, q: q}
		ctx = context.WithValue(ctx, stepsKey{}, steps)
		r = l.guard.run(ctx, f, q, next, Attempt{IdempotencyKey: at.IdempotencyKey, Number: at.Number, Unknown: at.Unknown}, func() {})
		return l.result(&r, q, steps)
	})
	switch {
	case a.Called:
		return l.callOutcome(r, a, err)
	case errors.Is(err, leasedkey.ErrInDoubt):
		return newRefusal(unsureProblem(), err)
	case err != nil && l.config.FailOpen != "" && !q.finishing: // a Completer can try again later
		return l.runUnprotected(ctx, f, q, next, err)
	case err != nil:
		return newRefusal(unavailableProblem(), err)
	}
	switch a.State {
	case keystore.Completed:
		return l.guard.replayStored(a.Result)
	case keystore.Conflict:
		return newRefusal(l.guard.mismatchProblem(), nil)
	case keystore.Held, keystore.Gone: // another process handles the key, or has changed it since a Completer read it
		return newRefusal(l.guard.inFlightProblem(a.Left), nil)
	}
	return newRefusal(newProblem(http.StatusGone, codeGone, "the key was ended without an answer", 0), nil)
}

func unsureProblem() *problem {
	return newProblem(http.StatusConflict, codeUnsure, "it is unknown whether an earlier attempt took effect, and repeating it is not safe; query the state that it changes", 0)
}

// result returns the bytes that Do keeps for the key, or an error that ends the key in another way.
func (l *leased) result(r *runResult, q *request, done *steps) ([]byte, error) {
	if errors.Is(r.err, ErrAnswerTooLarge) {
		r.rule = KeepAnswer // the next answer would be as large, and its handler would have a second effect
	}
	if r.rule == ReleaseKey && (r.noAnswer || q.finishing) { // no client would repeat the request
		r.rule = InDoubt
	}
	if r.rule == InDoubt && done.isInDoubt() {
		r.problem, r.err = unsureProblem(), errors.Join(r.err, leasedkey.ErrInDoubt)
	}
	switch r.rule {
	case ReleaseKey:
		return nil, semel.Retry(errDoubt)
	case InDoubt:
		return nil, semel.Unknown(errDoubt)
	}
	b, err := r.answer.encode(l.guard.config.Headers)
	if err != nil {
		silent := l.guard.failRun(newProblem(http.StatusInternalServerError, codeAnswer, "its headers have too many bytes", 0), err)
		r.outcome = silent.outcome
		b, err = r.answer.encode([]string{contentType})
	}
	r.stored = err == nil
	return b, err
}

// callOutcome returns the outcome of a request whose handler was called.
func (l *leased) callOutcome(r runResult, a leasedkey.Answer, err error) outcome {
	switch {
	case errors.Is(err, store.ErrClaimLost):
		return newRefusal(l.guard.inFlightProblem(retryAfter), err)
	case errors.Is(err, leasedkey.ErrNotRecorded):
		return newRefusal(newProblem(http.StatusServiceUnavailable, codeNotRecorded, "repeat the request with the same key", retryAfter), err)
	case r.answer == nil: // the handler was not called
		return newRefusal(unavailableProblem(), err)
	}
	r.stored = r.stored && a.State == keystore.Completed
	return r.outcome
}

// runUnprotected runs a handler while the store is down.
func (l *leased) runUnprotected(ctx context.Context, f *flight, q *request, next http.Handler, err error) outcome {
	ctx, cancel := context.WithTimeout(ctx, l.guard.config.Timeout)
	defer cancel()
	o := l.guard.run(ctx, f, q, next, Attempt{IdempotencyKey: l.guard.idempotencyKey(q), Number: 1, Unknown: true}, func() {}).outcome
	o.fate, o.err = Unprotected, errors.Join(err, o.err)
	return o
}

// Resolve records what a person found out about a request of NewLeased with an unknown outcome. After
// leasedkey.Happened, the client gets the code "answer-gone". After leasedkey.DidNotHappen, the request may
// run again. If the outcome is already known, or if the request is in progress, the error wraps semel.ErrState. If
// the guard is from New, the error wraps semel.ErrUnsupported. After an error, nothing is recorded.
func (g *Guard) Resolve(ctx context.Context, caller, key string, f leasedkey.Finding) error {
	l, is := g.strategy.(*leased)
	if !is {
		return fmt.Errorf("httpkey: a guard of New leaves no unknown outcomes: %w", semel.ErrUnsupported)
	}
	if err := l.keys.Resolve(ctx, caller, key, f, nil); err != nil {
		return fmt.Errorf("httpkey: %w", err)
	}
	return nil
}

// ResolveStep is like Resolve, for one step of a request. After leasedkey.Happened, Step returns output. The parameter
// output has at most keystore.MaxResult bytes.
func (g *Guard) ResolveStep(ctx context.Context, caller, key, step string, f leasedkey.Finding, output []byte) error {
	l, is := g.strategy.(*leased)
	if !is || l.steps == nil {
		return fmt.Errorf("httpkey: the guard has no LeaseConfig.Stepped: %w", semel.ErrUnsupported)
	}
	of := (&request{caller: caller, key: key}).step(step)
	if err := l.steps.Resolve(ctx, of.Source, of.ID, f, output); err != nil {
		return fmt.Errorf("httpkey: step %q: %w", step, err)
	}
	return nil
}
