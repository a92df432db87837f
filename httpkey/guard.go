package httpkey

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/worker"
)

// Guard protects handlers of any number of routes. Create a Guard with New or NewLeased. A Guard is safe for
// concurrent use.
type Guard struct {
	config     Config
	completion *Completion // nil if requests are not stored
	strategy   strategy
	flights    flights
	handlers   *shares // running handlers
	bodies     *shares // bytes of request bodies
	counts     counts
	running    worker.Group // the requests that Drain waits for
}

// strategy is one of the two ways to store keys: transactional or leased.
type strategy interface {
	// attempt answers a request from the store, or runs the handler of the request.
	attempt(ctx context.Context, f *flight, q *request, next http.Handler) outcome
	// check returns an error if the store does not work.
	check(ctx context.Context) error
}

// Protect returns a handler that runs next once for each key. Put that handler behind authentication and
// authorisation, and in front of every handler that changes the body of a request. Requests are rejected if
// their method is in neither Config.Methods nor Config.Pass.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
}

// ProtectFunc is Protect for a function.
func (g *Guard) ProtectFunc(next http.HandlerFunc) http.Handler { return g.Protect(next) }

// Drain waits until no handler is running, including handlers whose clients disconnected. If ctx ends first,
// Drain returns false. Call Drain after http.Server.Shutdown and before closing the store.
func (g *Guard) Drain(ctx context.Context) bool { return g.flights.waitIdle(ctx) }

func (g *Guard) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	began := time.Now()
	if f := g.finishingOf(r.Context()); f != nil {
		g.serveLeft(w, r, next, f, began)
		return
	}
	if !slices.Contains(g.config.Methods, r.Method) {
		g.serveOtherMethod(w, r, next, began)
		return
	}
	q, p := g.read(w, r)
	if q != nil && p == nil && g.completion != nil {
		p = q.encodeNote(g.completion.Headers)
	}
	switch {
	case p != nil && q != nil:
		q.release(g.bodies)
		g.finish(w, newRefusal(p, nil), began)
	case p != nil:
		g.finish(w, newRefusal(p, nil), began)
	case q == nil:
		g.passThrough(w, r, next, began)
	default:
		g.finish(w, g.serveOnce(q, next), began)
	}
}

// serveOtherMethod answers requests whose method is not in Config.Methods.
func (g *Guard) serveOtherMethod(w http.ResponseWriter, r *http.Request, next http.Handler, began time.Time) {
	if slices.Contains(g.config.Pass, r.Method) {
		g.passThrough(w, r, next, began)
		return
	}
	p := newProblem(http.StatusMethodNotAllowed, codeMethod, "nothing was done; requests of this method are not protected here", 0)
	p.allow = strings.Join(slices.Concat(g.config.Methods, g.config.Pass), ", ")
	g.finish(w, newRefusal(p, nil), began)
}

func (g *Guard) passThrough(w http.ResponseWriter, r *http.Request, next http.Handler, began time.Time) {
	defer func() { g.observe(Observation{Fate: Passed, Took: time.Since(began)}) }()
	next.ServeHTTP(w, r)
}

func (g *Guard) observe(o Observation) {
	g.counts.add(&o)
	if g.config.Observe != nil {
		g.config.Observe(o)
	}
}

func (g *Guard) finish(w http.ResponseWriter, o outcome, began time.Time) {
	g.report(&o, began)
	if o.abort {
		panic(http.ErrAbortHandler) // the handler panicked with this value, and its outcome is already stored
	}
	o.answer.send(w, o.fate == Replayed)
}

// report passes an outcome to Config.Observe. If the outcome is a problem, report sets its answer.
func (g *Guard) report(o *outcome, began time.Time) {
	seen := Observation{Fate: o.fate, Kept: o.stored, Took: time.Since(began), Err: o.err, Stack: o.stack}
	if o.problem != nil {
		seen.Code = o.problem.code
		o.answer = o.problem.answer(g.config.Problems)
	}
	seen.Status = o.answer.status
	g.observe(seen)
}

// serveOnce answers a request. If this process already works on a request with the same key, both requests get the same
// answer.
func (g *Guard) serveOnce(q *request, next http.Handler) outcome {
	f, first := g.flights.join(q.id(), q.fingerprint)
	if !first {
		q.body, q.note = nil, nil // the handler does not run for this request
		q.release(g.bodies)
		return g.waitForAnswer(f, q)
	}
	g.running.Go(func() {
		f.outcome = newRefusal(newProblem(http.StatusInternalServerError, codePanic, "", 0), errEnded)
		defer g.flights.complete(q.id(), f)
		defer q.release(g.bodies) // a handler whose client has disconnected still uses the body
		defer func() {
			if value := recover(); value != nil { // a panic of the store; call recovers panics of handlers
				f.outcome = newRefusal(newProblem(http.StatusInternalServerError, codePanic, "", 0), fmt.Errorf("httpkey: the store panicked: %s", legible.Panic(value)))
				f.outcome.stack = debug.Stack()
			}
		}()
		f.outcome = g.attempt(f, q, next)
	})
	select {
	case <-f.done:
		return f.outcome
	case <-f.late:
		return newRefusal(g.timeoutProblem(), errLate)
	}
}

// attempt waits until fewer than Config.MostOpen handlers run, and then answers a request. The request counts toward
// MostOpen until its handler has returned. The requests of a Completer do not count, because a Completer runs one
// request at a time.
func (g *Guard) attempt(f *flight, q *request, next http.Handler) outcome {
	if !q.finishing {
		if why := g.handlers.take(q.http.Context(), q.caller, 1); why != enough {
			return newRefusal(why.problem(), nil)
		}
		defer g.handlers.free(q.caller, 1)
	}
	return g.strategy.attempt(context.WithoutCancel(q.http.Context()), f, q, next)
}

var (
	errEnded = errors.New("httpkey: the handler ended its goroutine")
	errLate  = errors.New("httpkey: the handler is still running after its timeout; its key stays in progress until the handler returns")
)

// waitForAnswer waits for the answer of another request with the same key, which this process already handles.
func (g *Guard) waitForAnswer(f *flight, q *request) outcome {
	if f.fingerprint.Conflicts(q.fingerprint) {
		return newRefusal(g.mismatchProblem(), nil)
	}
	timer := time.NewTimer(g.config.Wait)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
	case <-q.http.Context().Done():
	}
	select {
	case <-f.done:
	default:
		return newRefusal(g.inFlightProblem(retryAfter), nil)
	}
	o := f.outcome
	switch {
	case o.fate == Replayed:
		return outcome{fate: Replayed, answer: o.answer}
	case o.stored:
		return g.replay(o.answer.filterHeaders(g.config.Headers))
	case o.fate == Refused:
		return newRefusal(o.problem, nil)
	}
	return newRefusal(g.inFlightProblem(retryAfter), nil) // the key was released, so a repeated request runs the handler
}

// replay returns the outcome of a request that gets a kept answer.
func (g *Guard) replay(a *answer) outcome { return outcome{fate: Replayed, answer: a} }

// replayStored returns the outcome of a request whose answer is in the store.
func (g *Guard) replayStored(b []byte) outcome {
	a, err := decodeAnswer(b)
	switch {
	case errors.Is(err, errNewer):
		return newRefusal(newProblem(http.StatusServiceUnavailable, codeNewer, "another server of this API can", retryAfter), err)
	case err != nil:
		return newRefusal(newProblem(http.StatusGone, codeGone, "the request took effect, and its answer was removed; query the state that it changed", 0), err)
	}
	return g.replay(a)
}

func (g *Guard) mismatchProblem() *problem {
	return newProblem(g.config.MismatchStatus, codeMismatch, "a key belongs to one request: the same method, path, query, body, Content-Type and Content-Encoding; send a new key with a new request", 0)
}

func (g *Guard) inFlightProblem(after time.Duration) *problem {
	return newProblem(g.config.InFlightStatus, codeInFlight, "repeat the request with the same key after Retry-After", min(max(after, retryAfter), time.Minute))
}

func (g *Guard) timeoutProblem() *problem {
	return newProblem(http.StatusGatewayTimeout, codeTimeout, "repeat the request with the same key", retryAfter)
}

func unavailableProblem() *problem {
	return newProblem(http.StatusServiceUnavailable, codeUnavailable, "nothing was done; repeat the request with the same key", retryAfter)
}

// runResult is the result of a handler's run.
type runResult struct {
	outcome
	rule Rule
	// noAnswer is true if the handler gave no answer.
	noAnswer bool
}

// The time for which a client still waits for a handler after the context of the handler has ended.
const lateGrace = time.Second

// run runs the handler. If the handler still runs after its timeout, run calls the function late.
func (g *Guard) run(ctx context.Context, f *flight, q *request, next http.Handler, a Attempt, late func()) runResult {
	a.Key, a.Caller, a.Finishing = q.key, q.caller, q.finishing
	to := newRecorder(g.config.MaxAnswer)
	watch := time.AfterFunc(g.config.Timeout+lateGrace, func() {
		f.tooLate()
		late()
	})
	defer watch.Stop()
	r := q.restoreBody(q.http.WithContext(context.WithValue(ctx, attemptKey{}, a)))
	stack, failed := call(next, to, r)
	begun := to.closeWrites()
	switch {
	case failed != nil:
		p := newProblem(http.StatusInternalServerError, codePanic, "", 0)
		o := g.failRun(p, failed)
		o.stack, o.abort = stack, errors.Is(failed, http.ErrAbortHandler)
		return o
	case to.large:
		return g.failRun(newProblem(http.StatusInternalServerError, codeAnswer, fmt.Sprintf("an answer has at most %d bytes", g.config.MaxAnswer), 0), ErrAnswerTooLarge)
	case !begun && ctx.Err() != nil:
		return g.failRun(g.timeoutProblem(), context.Cause(ctx))
	}
	return runResult{outcome: outcome{fate: Ran, answer: &to.answer}, rule: g.config.rule(to.answer.status)}
}

// failRun returns the result of a handler that gave no answer, or whose answer cannot be sent.
func (g *Guard) failRun(p *problem, err error) runResult {
	return runResult{outcome: outcome{fate: Ran, problem: p, answer: p.answer(g.config.Problems), err: err}, rule: g.config.ServerErrors, noAnswer: true}
}

// call calls a handler and recovers its panic.
func call(next http.Handler, w http.ResponseWriter, r *http.Request) (stack []byte, failed error) {
	defer func() {
		switch value := recover(); value {
		case nil:
		case http.ErrAbortHandler:
			failed = http.ErrAbortHandler
		default:
			stack, failed = debug.Stack(), fmt.Errorf("httpkey: the handler panicked: %s", legible.Panic(value))
		}
	}()
	next.ServeHTTP(w, r)
	return nil, nil
}

// idempotencyKey returns the key that a handler passes to the systems that it calls.
func (g *Guard) idempotencyKey(q *request) string {
	return semel.NewMessage(semel.Key{Consumer: g.config.Name, Source: q.caller, ID: q.key}, nil).IdempotencyKey("call")
}
