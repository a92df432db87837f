package httpkey

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/leasedkey"
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
	// MayForget says why it is bearable that the store may forget keys, and handlers run
	// twice: without it a store that is volatile, or does not say, is refused.
	MayForget string
	// FailOpen says why it is bearable that handlers run unprotected while the store is
	// down. Empty: they do not, and the request is answered with 503.
	FailOpen string
}

// leased is the door of keys that are claimed.
type leased struct {
	guard  *Guard
	keys   *leasedkey.Keys
	config LeaseConfig
}

// NewLeased returns a Guard for handlers with effects anywhere, over a store of leased keys,
// or all that is wrong with its configuration. It asks the store nothing.
func NewLeased(store contract.KeyStore, c Config, l LeaseConfig) (*Guard, error) {
	err := c.fits(true)
	if store != nil {
		store = patient{store}
	}
	keys, wrong := leasedkey.New(store, leasedkey.Config{
		Consumer: c.Name, Keep: c.Keep, Window: l.Window, Lease: l.Lease, Timeout: c.Timeout, MayForget: l.MayForget,
	})
	if err := errors.Join(err, wrong); err != nil {
		return nil, fmt.Errorf("httpkey: %w", err)
	}
	g := &Guard{config: c}
	g.door = &leased{g, keys, l}
	return g, nil
}

// poll is how often a copy under way in another process is asked for.
const poll = 200 * time.Millisecond

// attempt implements door.
func (l *leased) attempt(ctx context.Context, f *flight, q *request, next http.Handler) outcome {
	for until := time.Now().Add(l.guard.config.Wait); ; {
		o := l.once(ctx, f, q, next)
		if !o.inFlight() || time.Until(until) < poll || !timing.Wait(q.http.Context(), poll) {
			return o
		}
	}
}

// errDoubt is what an attempt ends with of which nobody knows what it did.
var errDoubt = errors.New("httpkey: the handler did not say what it did")

func (l *leased) once(ctx context.Context, f *flight, q *request, next http.Handler) outcome {
	var r ran
	asked := leasedkey.Request{Source: q.caller, ID: q.key, Fingerprint: q.fingerprint}
	a, err := l.keys.Do(ctx, asked, func(ctx context.Context, at leasedkey.Attempt) ([]byte, error) {
		r = l.guard.run(ctx, f, q, next, Attempt{IdempotencyKey: at.IdempotencyKey, Number: at.Number, Unknown: at.Unknown}, func() {})
		return l.result(&r)
	})
	switch {
	case a.Called:
		return l.called(r, a, err)
	case errors.Is(err, leasedkey.ErrInDoubt):
		return refused(because(http.StatusConflict, codeUnsure, "nobody knows whether an attempt before this one took effect, and repeating it is not safe; ask for the state of what it changes", 0), err)
	case err != nil && l.config.FailOpen != "":
		return l.unprotected(ctx, f, q, next, err)
	case err != nil:
		return refused(unavailable(), err)
	}
	switch a.State {
	case contract.KeyCompleted:
		return l.guard.stored(a.Result)
	case contract.KeyConflict:
		return refused(l.guard.mismatch(), nil)
	case contract.KeyHeld:
		return refused(l.guard.inFlight(a.Left), nil)
	}
	return refused(because(http.StatusGone, codeGone, "the key was ended without an answer", 0), nil)
}

// result is what Do keeps, or how its key ends otherwise.
func (l *leased) result(r *ran) ([]byte, error) {
	if errors.Is(r.err, ErrAnswerTooLarge) {
		r.rule = KeepAnswer // it would be as large again, after another effect
	}
	if r.silent && r.rule == ReleaseKey {
		r.rule = InDoubt
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
	case errors.Is(err, contract.ErrClaimLost):
		return refused(l.guard.inFlight(again), err)
	case errors.Is(err, leasedkey.ErrNotRecorded):
		return refused(because(http.StatusServiceUnavailable, codeNotRecorded, "repeat the request with the same key", again), err)
	case r.answer == nil: // the handler was not reached
		return refused(unavailable(), err)
	}
	r.kept = r.kept && a.State == contract.KeyCompleted
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
