package httpkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/keystore"
)

// Completion configures the requests that a Completer can finish. Method, host, URI and body are stored with
// the key until the outcome is known. A request with more than keystore.MaxResult bytes gets 413.
type Completion struct {
	// Headers are the request headers that the handler reads. Content-Type and Content-Encoding are always
	// stored. Headers with secrets, such as Authorization or Cookie, are rejected.
	Headers []string
	// After is the time for which a request must have been idle before a Completer runs the request; default one
	// minute. The required idle time doubles with each attempt, up to one hour, or up to After if After is longer.
	After time.Duration
	// Attempts is a number of attempts, including attempts of clients; default 10. After this number of attempts, a
	// Completer leaves the request to a person.
	Attempts int
}

const (
	defaultAfter    = time.Minute
	defaultAttempts = 10
	mostAfter       = time.Hour
)

// requestStore returns the store of requests, or nil if Completion is not set or the store cannot store
// requests.
func (l *LeaseConfig) requestStore(st keystore.Store) admin.RequestStore {
	if l.Completion == nil {
		return nil
	}
	notes, _ := st.(admin.RequestStore)
	return notes
}

// validate returns an error for faults of Stepped and Completion, and sets the defaults.
func (l *LeaseConfig) validate(c *Config, keeps bool) (err error) {
	if l.Stepped && l.FailOpen != "" {
		err = errors.New("FailOpen and Stepped are both set; without the store, completed steps are unknown; remove one of them")
	}
	if l.Completion == nil {
		return err
	}
	own := *l.Completion
	l.Completion = &own
	own.After, own.Attempts = cmp.Or(own.After, defaultAfter), cmp.Or(own.Attempts, defaultAttempts)
	names, wrong := keptNames("Completion.Headers", append(slices.Clone(own.Headers), fingerprinted...))
	own.Headers = names
	err = errors.Join(err, wrong)
	switch {
	case !keeps:
		return errors.Join(err, fmt.Errorf("the store does not store requests, so a Completer finds none: %w", semel.ErrUnsupported))
	case own.After < 0 || own.Attempts < 0:
		return errors.Join(err, fmt.Errorf("Completion has After %v and Attempts %d; neither is below 0", own.After, own.Attempts))
	case own.After >= c.Keep:
		return errors.Join(err, fmt.Errorf("Completion.After is %v, and Keep is %v: a key would be gone before its request is finished", own.After, c.Keep))
	}
	return err
}

// isDue reports whether a Completer should run the request of a key now.
func (c *Completion) isDue(k *admin.AbandonedKey) bool {
	wait := c.After
	for n := 1; n < k.Started && wait < mostAfter; n++ {
		wait *= 2
	}
	return k.Started < c.Attempts && k.Quiet >= max(c.After, min(wait, mostAfter))
}

// Completer finishes abandoned requests. Create a Completer with Guard.Completer.
type Completer struct {
	guard   *Guard
	notes   admin.RequestStore
	handler http.Handler
	nextKey []byte // where the next call of readAbandoned starts reading
}

// Completer returns a Completer that runs abandoned requests through handler. The parameter handler must be the handler
// of the server with its routes and the guard, but without authentication, because no secrets are stored. The caller is
// in Attempt.Caller. If the guard is not from NewLeased with LeaseConfig.Completion, the error wraps
// semel.ErrUnsupported.
func (g *Guard) Completer(handler http.Handler) (*Completer, error) {
	l, is := g.strategy.(*leased)
	if !is || g.completion == nil {
		return nil, fmt.Errorf("httpkey: a Completer is for a guard of NewLeased with LeaseConfig.Completion: %w", semel.ErrUnsupported)
	}
	return &Completer{guard: g, notes: l.notes, handler: handler}, nil
}

const (
	completeEvery = 15 * time.Second
	// keysPerCall is the number of keys that one call of the store reads. callsPerPass is the number
	// of calls of the store in a pass. So the cost of a pass does not depend on the size of the table.
	keysPerCall  = 500
	callsPerPass = 20
)

// Run calls Pass now and every fifteen seconds until ctx ends. If not nil, the function failed is called with each
// error, which wraps an *UnfinishedError for each request that could not be finished.
func (c *Completer) Run(ctx context.Context, failed func(error)) {
	for {
		if err := c.Pass(ctx); err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
		if !timing.Wait(ctx, completeEvery) {
			return
		}
	}
}

// Pass reads at most 10,000 keys and runs the abandoned requests among them, one after the other. The next Pass
// continues at the next key. Several processes may call Pass, each with its own Completer; only one process runs an
// abandoned request. If a request fails, Pass continues with the other requests and returns the joined errors.
func (c *Completer) Pass(ctx context.Context) error {
	var failed []error
	for range callsPerPass {
		looked, past := time.Now(), false
		left, err := c.readAbandoned(ctx)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("httpkey: cannot read abandoned requests from the key store: %w", err))...)
		}
		for i := range left.Keys {
			if ctx.Err() != nil {
				return errors.Join(failed...)
			}
			// After the time Completion.After, other processes may have finished the requests of the remaining keys, so
			// the keys are read again.
			if past = i > 0 && time.Since(looked) > c.guard.completion.After; past {
				break
			}
			if err := c.finish(ctx, &left.Keys[i]); err != nil {
				failed = append(failed, err)
			}
		}
		if past {
			continue
		}
		if c.nextKey = left.Next; c.nextKey == nil {
			break
		}
	}
	return errors.Join(failed...)
}

func (c *Completer) readAbandoned(ctx context.Context) (admin.AbandonedKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return c.notes.AbandonedKeys(ctx, admin.AbandonedKeysQuery{Consumer: c.guard.config.Name, Quiet: c.guard.completion.After, After: c.nextKey, Most: keysPerCall})
}

// UnfinishedError reports a request that a Completer could not finish. Guard.Resolve needs Caller and Key. The text of
// the error does not contain Caller and Key.
type UnfinishedError struct {
	Caller, Key string
	// Attempts is the number of attempts so far. Left reports that a Completer makes no further attempt.
	Attempts int
	Left     bool
	Err      error
}

// Error implements error.
func (e *UnfinishedError) Error() string {
	text := fmt.Sprintf("httpkey: an abandoned request is not finished after %d attempts", e.Attempts)
	if e.Left {
		text += ", and is left to a person"
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap returns Err.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// finish runs the request of a key.
func (c *Completer) finish(ctx context.Context, k *admin.AbandonedKey) error {
	if !c.guard.completion.isDue(k) {
		return nil
	}
	fail := func(err error) error {
		attempts := k.Started + 1
		return &UnfinishedError{Caller: k.Key.Source, Key: k.Key.ID, Attempts: attempts, Left: attempts >= c.guard.completion.Attempts, Err: err}
	}
	r, err := decodeRequest(k.Note)
	if err != nil {
		return fail(err)
	}
	f := &finishingRequest{guard: c.guard, caller: k.Key.Source, key: k.Key.ID, claims: k.Started}
	to := newRecorder(MostAnswer)
	_, failed := call(c.handler, to, r.WithContext(context.WithValue(ctx, finishingKey{}, f)))
	o := f.outcome
	switch {
	case o == nil:
		return fail(errors.Join(failed, fmt.Errorf("the handler of the Completer answers with %d before the guard is reached; give it one without authentication", to.answer.status)))
	case o.stored || o.fate == Replayed || o.isInFlight():
		return nil
	case o.problem != nil:
		return fail(errors.Join(fmt.Errorf("it is answered with %d %s", o.problem.status, o.problem.code), o.err))
	}
	return fail(errors.Join(fmt.Errorf("its handler answers with %d", o.answer.status), o.err))
}

// finishingRequest is a request that a Completer runs through the handler and the guard.
type finishingRequest struct {
	guard       *Guard
	caller, key string
	claims      int      // number of claims of the key so far
	outcome     *outcome // set by the guard
}

type finishingKey struct{}

// finishingOf returns the request of this guard's Completer, or nil for a request of a client.
func (g *Guard) finishingOf(ctx context.Context) *finishingRequest {
	if f, is := ctx.Value(finishingKey{}).(*finishingRequest); is && f.guard == g {
		return f
	}
	return nil
}

// serveLeft runs the handler of an abandoned request.
func (g *Guard) serveLeft(w http.ResponseWriter, r *http.Request, next http.Handler, f *finishingRequest, began time.Time) {
	q := &request{http: r, caller: f.caller, key: f.key, finishing: true, claims: f.claims}
	o := outcome{}
	if p := q.readBody(w, g.config.MaxBody); p != nil {
		o = newRefusal(p, nil)
	} else {
		q.fingerprint = fingerprint(r, q.body)
		o = g.serveOnce(q, next)
	}
	if o.fate == Ran {
		o.fate = Finished
	}
	g.report(&o, began)
	f.outcome = &o
	o.answer.send(w, false)
}
