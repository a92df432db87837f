package leasedkey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/keystore"
)

// Keys makes calls. Create Keys with New. Keys is safe for concurrent use.
type Keys struct {
	store  keystore.Store
	config Config
}

// New returns Keys that use a store. New returns an error if the configuration has a fault, or if the store
// may lose keys (see Config.AllowVolatile). New makes no call.
func New(st keystore.Store, c Config) (*Keys, error) {
	if err := c.prepare(st); err != nil {
		return nil, fmt.Errorf("leasedkey: %w", err)
	}
	return &Keys{st, c}, nil
}

// Request is a request for one call.
type Request struct {
	// Source and ID identify the request. Two requests with equal Source and ID are the same request.
	Source, ID string
	// Fingerprint identifies the content of the request. A request with the same key and another fingerprint
	// is a conflict. A fingerprint without a version is not compared.
	Fingerprint semel.Fingerprint
	// Note, if not nil, is stored before the call. If the process of the request dies, another process that finishes
	// the request reads Note. The store must implement admin.RequestStore.
	Note []byte
	// Seen, if not 0, is the value of admin.AbandonedKey.Started. If Seen is set, Do makes the call only if the number
	// of claims of the key is still equal to Seen; see keystore.Claim.
	Seen int
}

// Attempt describes a call to the function that makes it.
type Attempt struct {
	Key semel.Key
	// IdempotencyKey is the key for the other system, the same for all attempts of a request.
	IdempotencyKey string
	// Number is the number of the attempt, from 1.
	Number int
	// Unknown reports that an earlier attempt may have had its effect. Since is the time since the first
	// attempt.
	Unknown bool
	Since   time.Duration
}

// Answer is the outcome of a request.
type Answer struct {
	// State is one of:
	//   - keystore.Completed: the call took effect;
	//   - keystore.Failed: the call had no effect, and will not be repeated;
	//   - keystore.Conflict: the key was used for other content;
	//   - keystore.Held: another process is making the call; if that process dies, its lease ends after Left;
	//   - keystore.Claimed: the request may be repeated;
	//   - keystore.Gone: the key has changed since Request.Seen, and no call was made.
	State keystore.State
	// Called reports whether Do made a call.
	Called bool
	Left   time.Duration
	// Result is the result of the call that Do made, or of the earlier call that succeeded.
	Result []byte
}

// ErrInDoubt is returned if the outcome of an earlier attempt is unknown and the other system may have
// forgotten the idempotency key, so that another call could cause a second effect. No call was made. A person
// must determine the outcome and record it with Keys.Resolve.
var ErrInDoubt = errors.New("semel: it is unknown whether the call took effect, and the other side may have forgotten its idempotency key")

// ErrNotRecorded is returned if the call was made but its outcome could not be stored. For the next request with the
// same key, the outcome is unknown.
var ErrNotRecorded = errors.New("semel: the call was made, and its outcome is not recorded")

// Do makes the call of a request. If another process is making the call, or if its outcome is known, Do makes
// no call.
//
// The error of call decides the outcome:
//   - nil: the effect happened; the result, at most keystore.MaxResult bytes, is stored;
//   - semel.Permanent, semel.Discard, semel.Park: the call had no effect and will not be repeated;
//   - semel.Retry, semel.RetryAfter: the attempt had no effect;
//   - semel.Duplicate: an earlier attempt had the effect;
//   - any other error, a panic, semel.Unknown, or any error after Timeout: unknown.
//
// Do returns the error of call. If another call has ended the request, Do returns nil.
//
// If the store fails before the call, or the lease ends before the call, no call is made and Do returns an
// error. store.ErrClaimLost means that the call took longer than its lease and that another process has
// claimed the key; nothing was recorded.
func (k *Keys) Do(ctx context.Context, r Request, call func(ctx context.Context, a Attempt) ([]byte, error)) (Answer, error) {
	key := semel.Key{Consumer: k.config.Consumer, Source: r.Source, ID: r.ID}
	c, asked := k.newClaim(key), time.Now()
	claimed, err := k.store.ClaimKey(ctx, keystore.Claim{Key: key, Fingerprint: r.Fingerprint, Token: c.Token, Lease: c.Lease, Keep: k.config.Keep, Seen: r.Seen})
	if err != nil {
		return Answer{}, fmt.Errorf("leasedkey: %w", err)
	}
	if claimed.State != keystore.Claimed {
		return Answer{State: claimed.State, Left: claimed.Left, Result: claimed.Result}, nil
	}
	a := Attempt{
		Key: key, IdempotencyKey: semel.NewMessage(key, nil).IdempotencyKey("call"), Number: claimed.Started, Unknown: claimed.Unknown(),
		Since: claimed.Since + time.Since(asked), // the response of the store may have been slow
	}
	c.Hold(asked, claimed.Left)
	defer c.LetGo() // also if the call ends its goroutine
	if a.Unknown && k.forgotten(a.Since) {
		return k.resolveDoubt(ctx, c, a, call)
	}
	if err := k.saveNote(ctx, c, r.Note); err != nil {
		return c.end(ctx, Answer{State: keystore.Claimed}, keystore.Release, fmt.Errorf("leasedkey: no call was made, because its note could not be stored: %w", err))
	}
	return c.callUser(ctx, a, call)
}

// saveNote stores the Note of a request.
func (k *Keys) saveNote(ctx context.Context, c *claim, note []byte) error {
	if note == nil {
		return nil
	}
	notes, able := k.store.(admin.RequestStore)
	if !able {
		return fmt.Errorf("the store keeps no notes: %w", semel.ErrUnsupported)
	}
	return notes.SaveRequest(ctx, c.Key, c.Token, note)
}

// forgotten reports whether the other system may have forgotten the idempotency key when a new call arrives.
func (k *Keys) forgotten(since time.Duration) bool {
	return calls.Rule{Window: k.config.Window, Timeout: k.config.Timeout}.Forgotten(since)
}

// resolveDoubt asks the other system about an unknown outcome.
func (k *Keys) resolveDoubt(ctx context.Context, c *claim, a Attempt, call func(context.Context, Attempt) ([]byte, error)) (Answer, error) {
	finding, result := StillUnknown, []byte(nil)
	var asked error
	if k.config.Ask != nil {
		asked = c.runWithLease(ctx, func(ctx context.Context) (err error) {
			finding, result, err = k.config.Ask(ctx, a)
			return err
		})
	}
	switch {
	case asked == nil && finding == Happened:
		return c.complete(ctx, Answer{State: keystore.Completed, Result: result})
	case asked == nil && finding == DidNotHappen:
		return c.callUser(ctx, a, call)
	}
	err := fmt.Errorf("leasedkey: the first attempt was %v ago, and keys are known for %v: %w", a.Since.Round(time.Second), k.config.Window, ErrInDoubt)
	if asked != nil {
		err = fmt.Errorf("%w; asked, the other side answers: %w", err, asked)
	}
	return c.end(ctx, Answer{State: keystore.Claimed}, keystore.Abandon, err)
}

// Resolve records the outcome that a person has determined for a request with an unknown outcome: Happened,
// with a result of at most keystore.MaxResult bytes, or DidNotHappen, after which the call may be made again.
// If a process is making the call, or if the outcome is known, the error wraps semel.ErrState.
func (k *Keys) Resolve(ctx context.Context, source, id string, f Finding, result []byte) error {
	key := semel.Key{Consumer: k.config.Consumer, Source: source, ID: id}
	ending := keystore.Forget
	switch f {
	case Happened:
		ending = keystore.Complete
	case DidNotHappen:
		result = nil
	default:
		return errors.New("leasedkey: say whether it happened or not; what is unknown stays so by itself")
	}
	if len(result) > keystore.MaxResult {
		return fmt.Errorf("leasedkey: the result has %d bytes, and at most %d are kept; nothing was recorded", len(result), keystore.MaxResult)
	}
	c := k.newClaim(key)
	claimed, err := k.store.ClaimKey(ctx, keystore.Claim{Key: key, Token: c.Token, Lease: c.Lease, Keep: k.config.Keep})
	switch {
	case err != nil:
		return fmt.Errorf("leasedkey: %w", err)
	case claimed.State != keystore.Claimed:
		return fmt.Errorf("leasedkey: key %q is %v: %w", id, claimed.State, semel.ErrState)
	case !claimed.Unknown():
		back := keystore.Release
		if claimed.Started == 1 {
			back = keystore.Forget // the key did not exist
		}
		_, err := c.end(ctx, Answer{}, back, fmt.Errorf("leasedkey: of key %q no outcome is unknown: %w", id, semel.ErrState))
		return err
	}
	_, err = c.end(ctx, Answer{Result: result}, ending, nil)
	return err
}
