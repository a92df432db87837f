package leasedkey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/internal/worker"
)

// claim is a key that is this process's, for now.
type claim struct {
	*Keys
	key   semel.Key
	token contract.Token
	// until is when the lease surely lasts no longer. Beside a call it belongs to who
	// extends.
	until time.Time
}

// call makes the call, unless the lease may be over, and records what became of it.
func (c *claim) call(ctx context.Context, a Attempt, call func(context.Context, Attempt) ([]byte, error)) (Answer, error) {
	if !time.Now().Before(c.until) {
		return c.end(ctx, Answer{State: contract.KeyClaimed}, contract.KeyRelease, fmt.Errorf("leasedkey: nobody was called, since the lease may be over: %w", contract.ErrClaimLost))
	}
	var result []byte
	err := c.keep(ctx, func(ctx context.Context) (err error) {
		result, err = call(ctx, a)
		return err
	})
	event, state := eventOf(err)
	if event == contract.KeyComplete { // the other side may say that it had the call before
		return c.complete(ctx, Answer{State: state, Called: true, Result: result})
	}
	return c.end(ctx, Answer{State: state, Called: true}, event, err)
}

// complete ends a claim whose effect is there, also where its result is longer than what is
// kept: it is left out then, and the error says so.
func (c *claim) complete(ctx context.Context, a Answer) (Answer, error) {
	var err error
	if n := len(a.Result); n > contract.MaxKeyResult {
		a.Result, err = nil, fmt.Errorf("leasedkey: the call took effect, and its result of %d bytes is not kept, since that is more than %d", n, contract.MaxKeyResult)
	}
	return c.end(ctx, a, contract.KeyComplete, err)
}

// eventOf is how a claim ends whose call returned this, and how the key stands then.
func eventOf(err error) (contract.KeyEvent, contract.KeyState) {
	var decided *semel.HandlerError
	switch calls.OutcomeOf(false, err) { // the rule of consumers
	case contract.CallFailed:
		return contract.KeyRelease, contract.KeyClaimed
	case contract.CallUnknown:
		return contract.KeyAbandon, contract.KeyClaimed
	}
	if err == nil || errors.As(err, &decided) && decided.Decision == semel.DecideDuplicate {
		return contract.KeyComplete, contract.KeyCompleted
	}
	return contract.KeyFail, contract.KeyFailed
}

// keep runs a call within its time-out while the lease is extended beside it, and ends its
// context when the lease is another's, or is over and could not be extended.
func (c *claim) keep(ctx context.Context, call func(context.Context) error) (err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	calling, done := context.WithTimeout(ctx, c.config.Timeout)
	defer done()
	var keeper worker.Group
	over := make(chan struct{})
	keeper.Go(func() { c.extend(ctx, over, stop) })
	defer keeper.Wait()
	defer close(over)
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("leasedkey: the call panicked: %s", legible.Panic(value))
		}
	}()
	if err = call(calling); err != nil && calling.Err() != nil {
		err = semel.Unknown(fmt.Errorf("%w (%w)", err, context.Cause(calling))) // whatever it says, it came too late
	}
	return err
}

// extends is how often in a lease it is extended.
const extends = 3

// extend extends the lease until the call is over. No time is taken to last for longer than
// the store has said, whatever was done under the claim before this call.
func (c *claim) extend(ctx context.Context, over <-chan struct{}, stop context.CancelCauseFunc) {
	tick := time.NewTicker(c.config.Lease / extends)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		case <-time.After(time.Until(c.until)):
		}
		began := time.Now()
		ask, done := context.WithTimeout(context.WithoutCancel(ctx), min(c.config.Lease/extends, time.Until(c.until)))
		err := c.store.ExtendKey(ask, c.key, c.token, c.config.Lease)
		done()
		switch {
		case err == nil:
			c.until = began.Add(c.config.Lease)
		case errors.Is(err, contract.ErrClaimLost):
			c.until = time.Time{}
			stop(contract.ErrClaimLost)
			return
		case !time.Now().Before(c.until):
			stop(fmt.Errorf("the lease is over and could not be extended: %w", err))
			return
		}
	}
}

// Waits between the tries to record an end.
const (
	firstWait = 50 * time.Millisecond
	mostWait  = time.Second
)

// end records how the claim ends, also if ctx has: for as long as a lease, since the store may
// be away for a moment. The error is that of the call, and what kept its end from being
// recorded.
func (c *claim) end(ctx context.Context, a Answer, e contract.KeyEvent, err error) (Answer, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), c.config.Lease)
	defer done()
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		failed := c.store.EndKey(ctx, c.key, c.token, contract.KeyEnding{Event: e, Result: a.Result, Keep: c.config.Keep})
		switch {
		case failed == nil:
			return a, err
		case errors.Is(failed, contract.ErrClaimLost):
			return Answer{State: contract.KeyHeld, Called: a.Called}, errors.Join(err, contract.ErrClaimLost)
		case c.store.Classify(failed) == contract.ClassPermanent || !timing.Wait(ctx, wait):
			return Answer{State: contract.KeyClaimed, Called: a.Called}, errors.Join(err, fmt.Errorf("leasedkey: %w: %w", ErrNotRecorded, failed))
		}
	}
}
