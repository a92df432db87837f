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
	"github.com/semel-go/semel/store"
)

// Completion says what is stored of a request so that a Completer can finish it, and when it
// does. Method, host, URI and body are stored with the key until its end is known; a request
// of more than store.MaxKeyResult bytes is refused with 413.
type Completion struct {
	// Headers are those of a request that its handler reads; Content-Type and Content-Encoding
	// are always stored. What carries a secret, such as Authorization or Cookie, is refused.
	Headers []string
	// After is for how long nobody has worked on a request before a Completer does; 0 is a
	// minute. It doubles with each attempt, up to an hour or After.
	After time.Duration
	// Attempts is after how many of them, those of clients among them, a Completer leaves a
	// request to a person; 0 is 10.
	Attempts int
}

const (
	defaultAfter    = time.Minute
	defaultAttempts = 10
	mostAfter       = time.Hour
)

// completes returns the store's notes, if there are to be any and it keeps them.
func (l *LeaseConfig) completes(st store.KeyStore) admin.RequestStore {
	if l.Completion == nil {
		return nil
	}
	notes, _ := st.(admin.RequestStore)
	return notes
}

// fits reports what is wrong with steps and completion, and sets what was left open.
func (l *LeaseConfig) fits(c *Config, keeps bool) (err error) {
	if l.Stepped && l.FailOpen != "" {
		err = errors.New("FailOpen is set, and so is Stepped: without the store nobody knows which steps are done")
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
		return errors.Join(err, fmt.Errorf("the store keeps no notes, by which a Completer finds what was left: %w", semel.ErrUnsupported))
	case own.After < 0 || own.Attempts < 0:
		return errors.Join(err, fmt.Errorf("Completion has After %v and Attempts %d; neither is below 0", own.After, own.Attempts))
	case own.After >= c.Keep:
		return errors.Join(err, fmt.Errorf("Completion.After is %v, and Keep is %v: a key would be gone before its request is finished", own.After, c.Keep))
	}
	return err
}

// due reports whether the time of a key has come.
func (c *Completion) due(k *admin.AbandonedKey) bool {
	wait := c.After
	for n := 1; n < k.Started && wait < mostAfter; n++ {
		wait *= 2
	}
	return k.Started < c.Attempts && k.Quiet >= max(c.After, min(wait, mostAfter))
}

// Completer finishes requests whose clients do not come again. Use Guard.Completer.
type Completer struct {
	guard   *Guard
	notes   admin.RequestStore
	handler http.Handler
	place   []byte // where the walk goes on
}

// Completer returns one that has left requests run by a handler: that of the server, with its
// routes and the guard, but without authentication, since no secret is stored. A handler takes
// who asks from Attempt.Caller then. semel.ErrUnsupported: the guard is not one of NewLeased
// with LeaseConfig.Completion.
func (g *Guard) Completer(handler http.Handler) (*Completer, error) {
	l, is := g.door.(*leased)
	if !is || g.completion == nil {
		return nil, fmt.Errorf("httpkey: a Completer is for a guard of NewLeased with LeaseConfig.Completion: %w", semel.ErrUnsupported)
	}
	return &Completer{guard: g, notes: l.notes, handler: handler}, nil
}

const (
	completeEvery = 15 * time.Second
	// lookMost is at how many keys a call of the store looks, and passMost how many calls a
	// pass makes: so a large table costs no more at a time than a small one.
	lookMost = 500
	passMost = 20
)

// Run calls Pass now and each fifteen seconds until ctx ends. failed, if not nil, is told of
// each failure, which has an *UnfinishedError within for each request that is not finished.
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

// Pass looks at 10,000 keys at most, and has those requests run that nobody works on, one
// after the other. The next pass goes on where it ended. Any number of processes may call it,
// each with a Completer of its own; one of them runs a request. The errors of requests are
// joined, and others are run all the same.
func (c *Completer) Pass(ctx context.Context) error {
	var failed []error
	for range passMost {
		looked, past := time.Now(), false
		left, err := c.look(ctx)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("httpkey: keys that were left cannot be looked for: %w", err))...)
		}
		for i := range left.Keys {
			if ctx.Err() != nil {
				return errors.Join(failed...)
			}
			// After a while others may have ended those that are left of these: it is asked
			// again, rather than for each of them in vain.
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
		if c.place = left.Next; c.place == nil {
			break
		}
	}
	return errors.Join(failed...)
}

func (c *Completer) look(ctx context.Context) (admin.AbandonedKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return c.notes.AbandonedKeys(ctx, admin.AbandonedKeysQuery{Consumer: c.guard.config.Name, Quiet: c.guard.completion.After, After: c.place, Most: lookMost})
}

// UnfinishedError says that a Completer has not finished a request. Its text has neither the
// key nor its caller, which Guard.Resolve takes.
type UnfinishedError struct {
	Caller, Key string
	// Attempts is how many there were; Left says that a Completer makes no more.
	Attempts int
	Left     bool
	Err      error
}

// Error implements error.
func (e *UnfinishedError) Error() string {
	text := fmt.Sprintf("httpkey: a request that was left is not finished after %d attempts", e.Attempts)
	if e.Left {
		text += ", and is left to a person"
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap returns why.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// finish has the request of a key run.
func (c *Completer) finish(ctx context.Context, k *admin.AbandonedKey) error {
	if !c.guard.completion.due(k) {
		return nil
	}
	fail := func(err error) error {
		attempts := k.Started + 1
		return &UnfinishedError{Caller: k.Key.Source, Key: k.Key.ID, Attempts: attempts, Left: attempts >= c.guard.completion.Attempts, Err: err}
	}
	r, err := noted(k.Note)
	if err != nil {
		return fail(err)
	}
	f := &finishing{guard: c.guard, caller: k.Key.Source, key: k.Key.ID, seen: k.Started}
	to := newRecorder(MostAnswer)
	_, failed := call(c.handler, to, r.WithContext(context.WithValue(ctx, finishingKey{}, f)))
	o := f.outcome
	switch {
	case o == nil:
		return fail(errors.Join(failed, fmt.Errorf("the handler of the Completer answers with %d before the guard is reached; give it one without authentication", to.answer.status)))
	case o.kept || o.fate == Replayed || o.inFlight():
		return nil
	case o.problem != nil:
		return fail(errors.Join(fmt.Errorf("it is answered with %d %s", o.problem.status, o.problem.code), o.err))
	}
	return fail(errors.Join(fmt.Errorf("its handler answers with %d", o.answer.status), o.err))
}

// finishing is a request of a Completer on its way to its guard.
type finishing struct {
	guard       *Guard
	caller, key string
	seen        int      // how many claims there were
	outcome     *outcome // set by the guard
}

type finishingKey struct{}

// finishingOf is the request of this guard's Completer; nil: it is a client's.
func (g *Guard) finishingOf(ctx context.Context) *finishing {
	if f, is := ctx.Value(finishingKey{}).(*finishing); is && f.guard == g {
		return f
	}
	return nil
}

// serveLeft has the handler of a request run whose client has left.
func (g *Guard) serveLeft(w http.ResponseWriter, r *http.Request, next http.Handler, f *finishing, began time.Time) {
	q := &request{http: r, caller: f.caller, key: f.key, finishing: true, seen: f.seen}
	o := outcome{}
	if p := q.readBody(w, g.config.MaxBody); p != nil {
		o = refused(p, nil)
	} else {
		q.fingerprint = fingerprint(r, q.body)
		o = g.fly(q, next)
	}
	if o.fate == Ran {
		o.fate = Finished
	}
	g.tell(&o, began)
	f.outcome = &o
	o.answer.send(w, false)
}
