package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/keyclaim"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// leasedKey processes one message under its leased key, without a transaction.
type leasedKey struct {
	untransacted
	store *leasedKeys
	key   semel.Key
	as    store.Outcome
	// claim is this process's claim of the key.
	claim  keyclaim.Claim
	answer keystore.Answer
	// requestedAt is the time just before the request that returned answer.
	requestedAt time.Time
	// refused is the permanent error of a message whose key cannot be claimed.
	refused error
	// unrecorded is the reason why the effect has no key (fail open), or nil if the effect has a key.
	unrecorded error
	// outcome is the outcome of the call, which may be unknown. outcome is used by one goroutine only.
	outcome store.CallOutcome
}

var errKeyLost = fmt.Errorf("the lease of the key is over, or may be: %w", store.ErrClaimLost)

// Kill no longer extends the lease, so that a handler that does not return loses its claim.
func (c *leasedKey) Kill() { c.claim.LetGo() }

// holds reports whether the lease is still valid. If the result is true, the function lost is called later, when the
// lease ends or when the store reports that the claim is lost.
func (c *leasedKey) holds(lost func(error)) bool {
	return c.claim.Holds(func(error) { lost(errKeyLost) })
}

// Run makes the call if the call is allowed.
func (c *leasedKey) Run(j *Job[Call]) error {
	config := c.store.config
	if c.refused != nil {
		return semel.Permanent(c.refused)
	}
	if c.unrecorded != nil {
		return j.Handle(Call{})
	}
	if !c.holds(j.Lost) {
		j.Lost(errKeyLost)
		return errKeyLost
	}
	if c.answer.Unknown() && !c.store.failOpen.isAllowed() && config.Provider.Rule.Forgotten(c.answer.Since+time.Since(c.requestedAt)) {
		c.outcome = store.CallUnknown
		switch found, err := config.doubt(j.Ctx, c.answer.Since, j.Message); {
		case err != nil:
			return err
		case found == Happened:
			return nil
		case !c.holds(j.Lost): // the claim was lost during Lookup
			j.Lost(errKeyLost)
			return errKeyLost
		}
	}
	c.outcome = store.CallUnknown
	err := j.Handle(Call{})
	c.outcome = calls.OutcomeOf(j.Ctx.Err() != nil, err)
	var decided *semel.HandlerError
	if c.outcome == store.CallDecided && errors.As(err, &decided) && decided.Decision == semel.DecideDuplicate {
		c.outcome = store.CallUnknown // the outcome is unknown until the next commit completes the key
	}
	return err
}

// Rollback releases the key and records the outcome of the call, which may be unknown. If the store does not respond,
// the key becomes free when its lease ends.
func (c *leasedKey) Rollback(ctx context.Context) {
	event := keystore.Release
	switch {
	case c.outcome == store.CallUnknown:
		event = keystore.Abandon
	case c.outcome == store.CallDecided && c.answer.Unknown():
		event = keystore.Forget // the known outcome holds for all calls under the key
	}
	_ = c.end(ctx, keystore.Ending{Event: event, Keep: c.store.config.Keep})
}

// Commit ends the key. If the store does not respond, Commit and the next attempt of the message repeat the request
// with the same token.
func (c *leasedKey) Commit(ctx context.Context, e store.Ending) Outcome {
	out := Outcome{Result: store.Result{Outcome: store.Committed, Culprit: store.NoCulprit}}
	if c.answer.State != keystore.Claimed {
		c.store.settleOpen(c.key)
	} else if err := c.complete(ctx, &e, &out.Result); err != nil {
		c.unrecorded = err
	}
	if c.unrecorded != nil && c.as == store.Applied && len(e.Trim) == 0 {
		c.store.failOpen.applied.Add(1)
		out.WithoutKey = c.unrecorded
	}
	return out
}

// complete ends the claimed key and sets r. If the end could not be recorded, and the effect needs no record (fail
// open), the method complete returns the store's error.
func (c *leasedKey) complete(ctx context.Context, e *store.Ending, r *store.Result) (unrecorded error) {
	ending := c.endingOf(e)
	switch err := c.end(ctx, ending); {
	case err == nil:
	case errors.Is(err, store.ErrClaimLost):
		r.Outcome, r.Class, r.Err = store.NotCommitted, store.ClassClaimLost, err
	case c.store.keys.Classify(err) != store.ClassPermanent && c.store.failOpen.canApplyWithoutKey(ctx, err):
		return err
	default:
		c.store.addOpenKey(c.key, &openKey{c.claim.Token, &ending})
		r.Outcome, r.Err = store.CommitUnknown, err
	}
	return nil
}

// endingOf returns how the key must end after its message has ended as the parameter e describes.
func (c *leasedKey) endingOf(e *store.Ending) keystore.Ending {
	out := keystore.Ending{Event: keystore.Complete, Keep: c.store.config.Keep}
	switch {
	case len(e.Trim) > 0: // no call was made
		out.Event = keystore.Release
	case c.as != store.Applied && c.answer.Unknown():
		out.Event = keystore.Abandon // the message failed, but an earlier call may have had an effect
	case c.as != store.Applied:
		out.Event, out.Result = keystore.Fail, failureResult(c.as, reasonIn(e.Rows))
	}
	return out
}

// reasonIn returns the reason of the message's row.
func reasonIn(rows []store.Row) semel.Reason {
	for i := range rows {
		if !rows[i].Repeat {
			return rows[i].Reason
		}
	}
	return reasonname.None
}

// end ends the key, and extends its lease until the store has responded.
func (c *leasedKey) end(ctx context.Context, e keystore.Ending) error {
	if c.answer.State != keystore.Claimed {
		c.claim.LetGo()
		return nil
	}
	asking, cancel := c.store.failOpen.requestContext(ctx)
	defer cancel()
	if n := c.store.reporter; n != nil && !c.store.failOpen.isAllowed() {
		var over func()
		c.claim.Refused, over = n.FollowEnd(c.key)
		defer over()
	}
	return c.claim.End(asking, e)
}
