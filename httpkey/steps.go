package httpkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
)

// steps contains the steps of one attempt of a request.
type steps struct {
	keys *leasedkey.Keys // nil if the guard's handlers have no steps
	q    *request

	mutex sync.Mutex
	names []string // names of the steps so far; guarded by mutex
	doubt bool     // a step has an unknown outcome; guarded by mutex
}

type stepsKey struct{}

// Step runs one call of a handler, such as a charge or a mail, under a name that is unique in the handler. A
// completed step is not repeated for its request: when the handler runs again, in any process, Step returns
// the kept output. The guard must be from NewLeased with LeaseConfig.Stepped.
//
// The function do passes Attempt.IdempotencyKey, which belongs to the step, to the system that do calls. The error of
// do decides:
//   - nil: the step is done, and its output, at most keystore.MaxResult bytes, is kept;
//   - semel.Permanent: the step had no effect, and never will;
//   - semel.Retry: this attempt had no effect;
//   - any other error: unknown. Within LeaseConfig.Window the step is repeated, with Attempt.Unknown; afterwards Step
//     returns leasedkey.ErrInDoubt until Guard.ResolveStep is called.
//
// If a step fails, the handler should answer with an error. After a 5xx the outcome of the request is
// unknown. When the client sends the request again, the handler continues after the completed steps.
func Step(ctx context.Context, name string, do func(ctx context.Context, a Attempt) ([]byte, error)) ([]byte, error) {
	s, is := ctx.Value(stepsKey{}).(*steps)
	if !is || s.keys == nil {
		return nil, fmt.Errorf("httpkey: step %q: the context is not that of a request which a Guard of NewLeased protects with LeaseConfig.Stepped", name)
	}
	if err := s.register(name); err != nil {
		return nil, fmt.Errorf("httpkey: %w", err)
	}
	a, err := s.keys.Do(ctx, s.q.step(name), func(ctx context.Context, at leasedkey.Attempt) ([]byte, error) {
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
	case a.State == keystore.Completed:
		return a.Result, nil
	case a.State == keystore.Held:
		return nil, fmt.Errorf("httpkey: step %q is under way in another process", name)
	}
	return nil, fmt.Errorf("httpkey: step %q: %w", name, ErrStepFailed)
}

// ErrStepFailed is the error of Step if an earlier attempt ended the step with semel.Permanent.
var ErrStepFailed = errors.New("semel: the step has failed for good")

// register returns an error if the handler cannot begin a step with the given name.
func (s *steps) register(name string) error {
	if name == "" || len(name) > steplimit.Name || strings.Contains(name, "\x00") {
		return fmt.Errorf("step %q: a name has 1 to %d bytes, and no zero byte", name, steplimit.Name)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if slices.Contains(s.names, name) {
		return nil
	}
	if len(s.names) == steplimit.Steps {
		return fmt.Errorf("step %q: a request has at most %d steps", name, steplimit.Steps)
	}
	s.names = append(s.names, name)
	return nil
}

// isInDoubt reports whether a step has an unknown outcome and may not be repeated.
func (s *steps) isInDoubt() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.doubt
}

// step returns the request of a step. The ID of this request is unique, because a key has no zero byte.
func (q *request) step(name string) leasedkey.Request {
	return leasedkey.Request{Source: q.caller, ID: q.key + "\x00" + name, Fingerprint: q.fingerprint}
}
