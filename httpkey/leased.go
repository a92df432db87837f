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
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/store"
)

// LeaseConfig says how handlers run whose effects are outside of the store. Window has to
// be set.
type LeaseConfig struct {
	// Window is for how long after the first attempt those whom the handler calls know
	// Attempt.IdempotencyKey, so that an attempt whose outcome is unknown may be repeated;
	// leasedkey.Always: for ever; leasedkey.Never: nothing is repeated that may have had an
	// effect. After it the request is answered with the code "outcome-unknown" until
	// somebody calls Resolve.
	Window time.Duration
	// Lease is how long a process that died keeps others from running the handler; 0 is a
	// minute. While the handler runs it is extended.
	Lease time.Duration
	// AllowVolatile says why it is bearable that the store may forget keys, and handlers run
	// twice: without it a store that is volatile, or does not say, is refused.
	AllowVolatile string
	// FailOpen says why it is bearable that handlers run unprotected while the store is
	// down. Empty: they do not, and the request is answered with 503.
	FailOpen string
	// Stepped says that all that a handler does elsewhere it does in steps, see Step. Window is
	// then of each step, and a request of which nobody knows how far it came is always run
	// again: it goes on behind the steps that are done.
	Stepped bool
	// Completion, if not nil, has a Completer finish what clients leave. The store must keep
	// notes then (admin.RequestStore), as those in SQL and memory do.
	Completion *Completion
}

// leased is the door of keys that are claimed.
type leased struct {
	guard  *Guard
	store  store.KeyStore
	keys   *leasedkey.Keys
	steps  *leasedkey.Keys // nil: handlers are not stepped
	notes  admin.RequestStore
	config LeaseConfig
}

// NewLeased returns a Guard for handlers with effects anywhere, over a store of leased keys,
// or all that is wrong with its configuration. It asks the store nothing.
func NewLeased(st store.KeyStore, c Config, l LeaseConfig) (*Guard, error) {
	given, notes, faults := st, l.completes(st), []error{c.fits(true)}
	c.MostOpen = cmp.Or(c.MostOpen, defaultLeased)
	faults = append(faults, l.fits(&c, notes != nil))
	if notes != nil {
		st = patientNotes{patient{st}, notes}
	} else if st != nil {
		st = patient{st}
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
	d.guard = &Guard{config: c, places: c.places(), bodies: c.bodies(), completion: l.Completion, door: d}
	return d.guard, nil
}

// poll is how often a copy under way in another process is asked for.
const poll = 200 * time.Millisecond

// attempt implements door.
func (l *leased) attempt(ctx context.Context, f *flight, q *request, next http.Handler) outcome {
	for until := time.Now().Add(l.guard.config.Wait); ; {
		o := l.once(ctx, f, q, next)
		if !o.inFlight() || q.finishing || time.Until(until) < poll || !timing.Wait(q.http.Context(), poll) {
			return o
		}
	}
}

// errDoubt is what an attempt ends with of which nobody knows what it did.
var errDoubt = errors.New("httpkey: the handler did not say what it did")

func (l *leased) once(ctx context.Context, f *flight, q *request, next http.Handler) outcome {
	var r ran
	asked := leasedkey.Request{Source: q.caller, ID: q.key, Fingerprint: q.fingerprint, Note: q.note, Seen: q.seen}
	a, err := l.keys.Do(ctx, asked, func(ctx context.Context, at leasedkey.Attempt) ([]byte, error) {
		steps := &steps{of: l.steps, q: q}
		ctx = context.WithValue(ctx, stepsKey{}, steps)
		r = l.guard.run(ctx, f, q, next, Attempt{IdempotencyKey: at.IdempotencyKey, Number: at.Number, Unknown: at.Unknown}, func() {})
		return l.result(&r, q, steps)
	})
	switch {
	case a.Called:
		return l.called(r, a, err)
	case errors.Is(err, leasedkey.ErrInDoubt):
		return refused(unsure(), err)
	case err != nil && l.config.FailOpen != "" && !q.finishing: // a Completer has time
		return l.unprotected(ctx, f, q, next, err)
	case err != nil:
		return refused(unavailable(), err)
	}
	switch a.State {
	case store.KeyCompleted:
		return l.guard.stored(a.Result)
	case store.KeyConflict:
		return refused(l.guard.mismatch(), nil)
	case store.KeyHeld, store.KeyGone: // others work on it, or have since a Completer saw it
		return refused(l.guard.inFlight(a.Left), nil)
	}
	return refused(because(http.StatusGone, codeGone, "the key was ended without an answer", 0), nil)
}

func unsure() *problem {
	return because(http.StatusConflict, codeUnsure, "nobody knows whether an attempt before this one took effect, and repeating it is not safe; ask for the state of what it changes", 0)
}

// result is what Do keeps, or how its key ends otherwise.
func (l *leased) result(r *ran, q *request, done *steps) ([]byte, error) {
	if errors.Is(r.err, ErrAnswerTooLarge) {
		r.rule = KeepAnswer // it would be as large again, after another effect
	}
	if r.rule == ReleaseKey && (r.silent || q.finishing) { // no client is there who would come again
		r.rule = InDoubt
	}
	if r.rule == InDoubt && done.inDoubt() {
		r.problem, r.err = unsure(), errors.Join(r.err, leasedkey.ErrInDoubt)
	}
	switch r.rule {
	case ReleaseKey:
		return nil, semel.Retry(errDoubt)
	case InDoubt:
		return nil, semel.Unknown(errDoubt)
	}
	b, err := r.answer.keep(l.guard.config.Headers)
	if err != nil {
		silent := l.guard.silent(because(http.StatusInternalServerError, codeAnswer, "its headers have too many bytes", 0), err)
		r.outcome = silent.outcome
		b, err = r.answer.keep([]string{contentType})
	}
	r.kept = err == nil
	return b, err
}

// called is the outcome of a request whose handler was called.
func (l *leased) called(r ran, a leasedkey.Answer, err error) outcome {
	switch {
	case errors.Is(err, store.ErrClaimLost):
		return refused(l.guard.inFlight(again), err)
	case errors.Is(err, leasedkey.ErrNotRecorded):
		return refused(because(http.StatusServiceUnavailable, codeNotRecorded, "repeat the request with the same key", again), err)
	case r.answer == nil: // the handler was not reached
		return refused(unavailable(), err)
	}
	r.kept = r.kept && a.State == store.KeyCompleted
	return r.outcome
}

// unprotected runs a handler while the store is down.
func (l *leased) unprotected(ctx context.Context, f *flight, q *request, next http.Handler, err error) outcome {
	ctx, cancel := context.WithTimeout(ctx, l.guard.config.Timeout)
	defer cancel()
	o := l.guard.run(ctx, f, q, next, Attempt{IdempotencyKey: l.guard.idempotencyKey(q), Number: 1, Unknown: true}, func() {}).outcome
	o.fate, o.err = Unprotected, errors.Join(err, o.err)
	return o
}

// Resolve records what a person has found out of a request of NewLeased that is in doubt:
// leasedkey.Happened, which its client is told from then on by the code "answer-gone", or
// leasedkey.DidNotHappen, after which it runs anew. semel.ErrState: it is not in doubt, or in
// progress; semel.ErrUnsupported: the guard is one of New, which leaves no doubt. Nothing was
// recorded then.
func (g *Guard) Resolve(ctx context.Context, caller, key string, f leasedkey.Finding) error {
	l, is := g.door.(*leased)
	if !is {
		return fmt.Errorf("httpkey: what is committed or rolled back is in no doubt: %w", semel.ErrUnsupported)
	}
	if err := l.keys.Resolve(ctx, caller, key, f, nil); err != nil {
		return fmt.Errorf("httpkey: %w", err)
	}
	return nil
}

// ResolveStep is Resolve of a step (Step) of a request that is in doubt. Where it happened,
// Step returns output from then on, at most store.MaxKeyResult bytes.
func (g *Guard) ResolveStep(ctx context.Context, caller, key, step string, f leasedkey.Finding, output []byte) error {
	l, is := g.door.(*leased)
	if !is || l.steps == nil {
		return fmt.Errorf("httpkey: the guard is none whose handlers are stepped: %w", semel.ErrUnsupported)
	}
	of := (&request{caller: caller, key: key}).step(step)
	if err := l.steps.Resolve(ctx, of.Source, of.ID, f, output); err != nil {
		return fmt.Errorf("httpkey: step %q: %w", step, err)
	}
	return nil
}
