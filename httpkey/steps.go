package httpkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/store"
)

// steps are those of one attempt of a request.
type steps struct {
	of *leasedkey.Keys // nil: the guard's handlers are not stepped
	q  *request

	mutex sync.Mutex
	names []string // of those that were asked for; guarded by mutex
	doubt bool     // of one nobody knows what it did; guarded by mutex
}

type stepsKey struct{}

// Step does a part of what a handler does elsewhere, under a name that no other part of the
// handler has: a charge, then a mail. Once it is done it is not done again for its request,
// whoever runs the handler next, and returns what it returned then. The guard is one of
// NewLeased with LeaseConfig.Stepped.
//
// do gives Attempt.IdempotencyKey to others, which is the step's own. A nil error of it says
// that the step is done, and its output, at most store.MaxKeyResult bytes, is kept.
// semel.Permanent says that it did not take effect and never will, semel.Retry that this
// attempt did not; after any other error nobody knows. Within LeaseConfig.Window it is done
// again then, with Attempt.Unknown; after that Step fails with leasedkey.ErrInDoubt until
// somebody calls Guard.ResolveStep.
//
// A handler whose step fails answers with an error. With 5xx its request is in doubt, and who
// sends it again goes on behind the steps that are done.
func Step(ctx context.Context, name string, do func(ctx context.Context, a Attempt) ([]byte, error)) ([]byte, error) {
	s, is := ctx.Value(stepsKey{}).(*steps)
	if !is || s.of == nil {
		return nil, fmt.Errorf("httpkey: step %q: the context is not that of a request which a Guard of NewLeased protects with LeaseConfig.Stepped", name)
	}
	if err := s.takes(name); err != nil {
		return nil, fmt.Errorf("httpkey: %w", err)
	}
	a, err := s.of.Do(ctx, s.q.step(name), func(ctx context.Context, at leasedkey.Attempt) ([]byte, error) {
		return do(ctx, Attempt{Key: s.q.key, Caller: s.q.caller, IdempotencyKey: at.IdempotencyKey, Number: at.Number, Unknown: at.Unknown, Finishing: s.q.finishing})
	})
	if errors.Is(err, leasedkey.ErrInDoubt) {
		s.mutex.Lock()
		s.doubt = true
		s.mutex.Unlock()
	}
	switch {
	case err != nil:
		return a.Result, fmt.Errorf("httpkey: step %q: %w", name, err)
	case a.State == store.KeyCompleted:
		return a.Result, nil
	case a.State == store.KeyHeld:
		return nil, fmt.Errorf("httpkey: step %q is under way in another process", name)
	}
	return nil, fmt.Errorf("httpkey: step %q: %w", name, ErrStepFailed)
}

// ErrStepFailed is returned by Step where an attempt before has ended it for good, with
// semel.Permanent.
var ErrStepFailed = errors.New("semel: the step has failed for good")

// takes says why a step cannot be done.
func (s *steps) takes(name string) error {
	if name == "" || len(name) > store.MaxStepName || strings.Contains(name, "\x00") {
		return fmt.Errorf("step %q: a name has 1 to %d bytes, and no zero byte", name, store.MaxStepName)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if slices.Contains(s.names, name) {
		return nil
	}
	if len(s.names) == store.MaxSteps {
		return fmt.Errorf("step %q: a request has at most %d steps", name, store.MaxSteps)
	}
	s.names = append(s.names, name)
	return nil
}

// inDoubt reports whether of a step nobody knows what it did, and it may not be repeated.
func (s *steps) inDoubt() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.doubt
}

// step is what a step is claimed by: no key has a zero byte.
func (q *request) step(name string) leasedkey.Request {
	return leasedkey.Request{Source: q.caller, ID: q.key + "\x00" + name, Fingerprint: q.fingerprint}
}
