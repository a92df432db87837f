package leasedkey

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/keyclaim"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// claim is a claim of this process on a key.
type claim struct {
	keyclaim.Claim
	config *Config
}

// newClaim returns a new claim that was not requested from the store yet.
func (k *Keys) newClaim(key semel.Key) *claim {
	return &claim{keyclaim.Claim{Store: k.store, Key: key, Token: store.NewToken(), Lease: k.config.Lease}, &k.config}
}

// callUser calls the user's function, and records the outcome. If the lease may have ended, the function is not
// called.
func (c *claim) callUser(ctx context.Context, a Attempt, call func(context.Context, Attempt) ([]byte, error)) (Answer, error) {
	if !c.Holds(nil) {
		return c.end(ctx, Answer{State: keystore.Claimed}, keystore.Release, fmt.Errorf("leasedkey: no call was made, because the lease may have ended: %w", store.ErrClaimLost))
	}
	var result []byte
	err := c.runWithLease(ctx, func(ctx context.Context) (err error) {
		result, err = call(ctx, a)
		return err
	})
	event, state := eventOf(err)
	if event == keystore.Complete { // the other system may report that it already got the call
		return c.complete(ctx, Answer{State: state, Called: true, Result: result})
	}
	return c.end(ctx, Answer{State: state, Called: true}, event, err)
}

// complete ends a claim whose call had its effect. If the result is too long, the result is not stored, and complete
// returns an error.
func (c *claim) complete(ctx context.Context, a Answer) (Answer, error) {
	var err error
	if n := len(a.Result); n > keystore.MaxResult {
		a.Result, err = nil, fmt.Errorf("leasedkey: the call took effect, and its result of %d bytes is not kept, since that is more than %d", n, keystore.MaxResult)
	}
	return c.end(ctx, a, keystore.Complete, err)
}

// eventOf returns how a claim ends after its call has returned err, and the new state of the key.
func eventOf(err error) (keystore.Event, keystore.State) {
	var decided *semel.HandlerError
	switch calls.OutcomeOf(false, err) { // consumers use the same rule
	case store.CallFailed:
		return keystore.Release, keystore.Claimed
	case store.CallUnknown:
		return keystore.Abandon, keystore.Claimed
	}
	if err == nil || errors.As(err, &decided) && decided.Decision == semel.DecideDuplicate {
		return keystore.Complete, keystore.Completed
	}
	return keystore.Fail, keystore.Failed
}

// runWithLease runs a call with its timeout. If another process has the lease, or if the lease ended and could not
// be extended, the context of the call is cancelled.
func (c *claim) runWithLease(ctx context.Context, call func(context.Context) error) (err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if !c.Holds(stop) {
		stop(store.ErrClaimLost)
	}
	defer c.Holds(nil)
	calling, done := context.WithTimeout(ctx, c.config.Timeout)
	defer done()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("leasedkey: the call panicked: %s", legible.Panic(value))
		}
	}()
	if err = call(calling); err != nil && calling.Err() != nil {
		err = semel.Unknown(fmt.Errorf("%w (%w)", err, context.Cause(calling))) // the call ended too late
	}
	return err
}

// end records the outcome of the claim, even if ctx has ended. For the duration of a lease, end tries again, because
// the store may be unavailable for a short time. The returned error joins the error of the call and the error of the
// store.
func (c *claim) end(ctx context.Context, a Answer, e keystore.Event, err error) (Answer, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), c.Lease)
	defer done()
	switch failed := c.End(ctx, keystore.Ending{Event: e, Result: a.Result, Keep: c.config.Keep}); {
	case failed == nil:
		return a, err
	case errors.Is(failed, store.ErrClaimLost):
		return Answer{State: keystore.Held, Called: a.Called}, errors.Join(err, store.ErrClaimLost)
	default:
		return Answer{State: keystore.Claimed, Called: a.Called}, errors.Join(err, fmt.Errorf("leasedkey: %w: %w", ErrNotRecorded, failed))
	}
}
