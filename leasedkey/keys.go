package leasedkey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

// Keys makes calls. Use New. It is safe for use by several goroutines.
type Keys struct {
	store  store.KeyStore
	config Config
}

// New returns Keys over a store, or what is wrong with the configuration, or that the store
// may forget. It calls nobody.
func New(st store.KeyStore, c Config) (*Keys, error) {
	if err := c.fits(st); err != nil {
		return nil, fmt.Errorf("leasedkey: %w", err)
	}
	return &Keys{st, c}, nil
}

// Request is what is called for.
type Request struct {
	// Source and ID are what the producer called it; two requests with both equal are one.
	Source, ID string
	// Fingerprint, if it has a version, is of the content: the same key with another one is
	// a conflict.
	Fingerprint semel.Fingerprint
	// Note, if not nil, is kept before the call is made, for who finds the request left:
	// admin.RequestStore, which the store must be then.
	Note []byte
	// Seen, if not 0, is admin.AbandonedKey.Started: nobody is called unless the key stands as
	// it was seen then, see store.KeyClaim.
	Seen int
}

// Attempt is what a call is told.
type Attempt struct {
	Key semel.Key
	// IdempotencyKey is to be given to the other side: the same for each attempt of a key.
	IdempotencyKey string
	// Number counts the attempts, from 1.
	Number int
	// Unknown says that nobody knows whether an attempt before this one took effect, and
	// Since how long ago the first was made.
	Unknown bool
	Since   time.Duration
}

// Answer is what became of a request.
type Answer struct {
	// State is store.KeyCompleted: the effect is there; store.KeyFailed: there is
	// none, and will be none; store.KeyConflict: the key stands for another content;
	// store.KeyHeld: another process is calling, for the time Left at least if it dies;
	// store.KeyClaimed: it may be asked for again; store.KeyGone: it does not stand as
	// Request.Seen says, and nobody was called.
	State store.KeyState
	// Called says that this very request made a call.
	Called bool
	Left   time.Duration
	// Result is what the call returned, this one or the one that ended it before.
	Result []byte
}

// ErrInDoubt: an attempt whose outcome is unknown is longer ago than the other side knows an
// idempotency key, so that nobody may repeat it; nobody was called. Keys.Resolve records what
// a person has found out.
var ErrInDoubt = errors.New("semel: nobody knows whether it took effect, and the other side may have forgotten its key")

// ErrNotRecorded: the call was made, and the store did not take what became of it. Its
// outcome is unknown to whoever asks next.
var ErrNotRecorded = errors.New("semel: the call was made, and its outcome is not recorded")

// Do calls for a request, unless another is calling for it or its end is known.
//
// A call that returns nil has taken effect, and its result is kept (at most
// store.MaxKeyResult bytes). semel.Permanent, semel.Discard and semel.Park say that it did
// not, and never will; semel.Retry and semel.RetryAfter that this attempt did not;
// semel.Duplicate that it had before. After any other error, a panic among them, and after one
// that has semel.Unknown within or comes when Timeout has passed, nobody knows. Do returns the
// error in each case, but nil where another's call has ended.
//
// An error of the store before the call means that nobody was called, and so does one that says
// that the lease was over before. store.ErrClaimLost:
// the call outlived its lease and another process has the key; nothing was recorded.
func (k *Keys) Do(ctx context.Context, r Request, call func(ctx context.Context, a Attempt) ([]byte, error)) (Answer, error) {
	key := semel.Key{Consumer: k.config.Consumer, Source: r.Source, ID: r.ID}
	c, asked := k.claim(key), time.Now()
	claimed, err := k.store.ClaimKey(ctx, store.KeyClaim{Key: key, Fingerprint: r.Fingerprint, Token: c.Token, Lease: c.Lease, Keep: k.config.Keep, Seen: r.Seen})
	if err != nil {
		return Answer{}, fmt.Errorf("leasedkey: %w", err)
	}
	if claimed.State != store.KeyClaimed {
		return Answer{State: claimed.State, Left: claimed.Left, Result: claimed.Result}, nil
	}
	a := Attempt{
		Key: key, IdempotencyKey: semel.NewMessage(key, nil).IdempotencyKey("call"), Number: claimed.Started, Unknown: claimed.Unknown(),
		Since: claimed.Since + time.Since(asked), // the answer may have been long on its way
	}
	c.Hold(asked, claimed.Left)
	defer c.LetGo() // also where the call ends its goroutine
	if a.Unknown && k.forgotten(a.Since) {
		return k.doubt(ctx, c, a, call)
	}
	if err := k.note(ctx, c, r.Note); err != nil {
		return c.end(ctx, Answer{State: store.KeyClaimed}, store.KeyRelease, fmt.Errorf("leasedkey: nobody was called, since it could not be noted: %w", err))
	}
	return c.call(ctx, a, call)
}

// note keeps the note of a request.
func (k *Keys) note(ctx context.Context, c *claim, note []byte) error {
	if note == nil {
		return nil
	}
	notes, able := k.store.(admin.RequestStore)
	if !able {
		return fmt.Errorf("the store keeps no notes: %w", semel.ErrUnsupported)
	}
	return notes.SaveRequest(ctx, c.Key, c.Token, note)
}

// forgotten reports whether the other side may not know the key of an attempt by the time
// that a call made now arrives there.
func (k *Keys) forgotten(since time.Duration) bool {
	return calls.Rule{Window: k.config.Window, Timeout: k.config.Timeout}.Forgotten(since)
}

// doubt has the other side asked what nobody knows.
func (k *Keys) doubt(ctx context.Context, c *claim, a Attempt, call func(context.Context, Attempt) ([]byte, error)) (Answer, error) {
	finding, result := StillUnknown, []byte(nil)
	var asked error
	if k.config.Ask != nil {
		asked = c.keep(ctx, func(ctx context.Context) (err error) {
			finding, result, err = k.config.Ask(ctx, a)
			return err
		})
	}
	switch {
	case asked == nil && finding == Happened:
		return c.complete(ctx, Answer{State: store.KeyCompleted, Result: result})
	case asked == nil && finding == DidNotHappen:
		return c.call(ctx, a, call)
	}
	err := fmt.Errorf("leasedkey: the first attempt was %v ago, and keys are known for %v: %w", a.Since.Round(time.Second), k.config.Window, ErrInDoubt)
	if asked != nil {
		err = fmt.Errorf("%w; asked, the other side answers: %w", err, asked)
	}
	return c.end(ctx, Answer{State: store.KeyClaimed}, store.KeyAbandon, err)
}

// Resolve records what a person has found out of a request that is in doubt: that it
// happened, with a result of at most store.MaxKeyResult bytes, or that it did not, so that
// it is called for anew. It refuses with semel.ErrState if a process is calling, or the end is
// known.
func (k *Keys) Resolve(ctx context.Context, source, id string, f Finding, result []byte) error {
	key := semel.Key{Consumer: k.config.Consumer, Source: source, ID: id}
	ending := store.KeyForget
	switch f {
	case Happened:
		ending = store.KeyComplete
	case DidNotHappen:
		result = nil
	default:
		return errors.New("leasedkey: say whether it happened or not; what is unknown stays so by itself")
	}
	if len(result) > store.MaxKeyResult {
		return fmt.Errorf("leasedkey: the result has %d bytes, and at most %d are kept; nothing was recorded", len(result), store.MaxKeyResult)
	}
	c := k.claim(key)
	claimed, err := k.store.ClaimKey(ctx, store.KeyClaim{Key: key, Token: c.Token, Lease: c.Lease, Keep: k.config.Keep})
	switch {
	case err != nil:
		return fmt.Errorf("leasedkey: %w", err)
	case claimed.State != store.KeyClaimed:
		return fmt.Errorf("leasedkey: key %q is %v: %w", id, claimed.State, semel.ErrState)
	case !claimed.Unknown():
		back := store.KeyRelease
		if claimed.Started == 1 {
			back = store.KeyForget // there was no key
		}
		_, err := c.end(ctx, Answer{}, back, fmt.Errorf("leasedkey: of key %q no outcome is unknown: %w", id, semel.ErrState))
		return err
	}
	_, err = c.end(ctx, Answer{Result: result}, ending, nil)
	return err
}
