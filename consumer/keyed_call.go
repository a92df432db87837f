package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/keyclaim"
)

// keyedCall is a flight of one message under its key. Nothing is open.
type keyedCall struct {
	store *keyed
	key   semel.Key
	as    contract.Outcome
	// claim is of the key while it is this process's.
	claim  keyclaim.Claim
	answer contract.KeyAnswer
	// asked is before the store was asked for it.
	asked time.Time
	// refused is why this key cannot be claimed, or ended, ever.
	refused error
	// unrecorded is why no key is claimed or completed for an effect that needs none.
	unrecorded error
	// applied: the flight ends with the effect there. Of the pilot.
	applied bool
	// outcome is what is known of the call. Of the pilot.
	outcome contract.CallOutcome
}

var errKeyLost = fmt.Errorf("the lease of the key is over, or may be: %w", contract.ErrClaimLost)

// Tx implements contract.Batch.
func (c *keyedCall) Tx(int) Call { return Call{} }

// Kill implements contract.Batch: a handler that does not end loses its claim when its lease
// ends.
func (c *keyedCall) Kill() { c.claim.LetGo() }

// ClassifyHandler implements contract.HandlerClassifier: whatever a handler meets, it is none
// of the store's.
func (c *keyedCall) ClassifyHandler(context.Context, error) contract.Class {
	return contract.ClassRetry
}

// holds reports whether the lease still lasts, and has the handler's context end when it does
// no more, whoever says so.
func (c *keyedCall) holds(lost func(error)) bool {
	return c.claim.Holds(func(error) { lost(errKeyLost) })
}

// call makes the call, unless nobody may.
func (c *keyedCall) call(ctx context.Context, config *settings, lost func(error), m *semel.Message, run func() error) error {
	if c.refused != nil {
		return semel.Permanent(c.refused)
	}
	if c.unrecorded != nil {
		return run()
	}
	if !c.holds(lost) {
		lost(errKeyLost)
		return errKeyLost
	}
	if c.answer.Unknown() && !c.store.detour.open() && config.callRule().Forgotten(c.answer.Since+time.Since(c.asked)) {
		c.outcome = contract.CallUnknown
		switch finding, err := config.doubt(ctx, c.answer.Since, m); {
		case err != nil:
			return err
		case finding == Happened:
			return nil
		case !c.holds(lost): // it was lost while the other side was asked
			lost(errKeyLost)
			return errKeyLost
		}
	}
	c.outcome = contract.CallUnknown
	err := run()
	c.outcome = calls.OutcomeOf(ctx.Err() != nil, err)
	var decided *semel.HandlerError
	if c.outcome == contract.CallDecided && errors.As(err, &decided) && decided.Decision == semel.DecideDuplicate {
		c.outcome = contract.CallUnknown // until the key is completed, which the next flight does
	}
	return err
}

// Rollback implements contract.Batch: the key is freed, with what is known of the call. What
// the store does not hear, the end of the lease tells.
func (c *keyedCall) Rollback(ctx context.Context) {
	event := contract.KeyRelease
	switch {
	case c.outcome == contract.CallUnknown:
		event = contract.KeyAbandon
	case c.outcome == contract.CallDecided && c.answer.Unknown():
		event = contract.KeyForget // this answer speaks for all calls under the key
	}
	_ = c.end(ctx, contract.KeyEnding{Event: event, Keep: c.store.policy.Keep})
}

// Commit implements contract.Batch: it ends the key. One end that the store does not answer is
// asked again under the same token, here and when the message flies again.
func (c *keyedCall) Commit(ctx context.Context, e contract.Ending) contract.Result {
	c.applied = c.as == contract.Applied && len(e.Trim) == 0
	if c.answer.State != contract.KeyClaimed {
		c.store.settleOpen(c.key)
		return contract.Result{Outcome: contract.Committed, Culprit: contract.NoCulprit}
	}
	ending := c.ending(&e)
	switch err := c.end(ctx, ending); {
	case err == nil:
		return contract.Result{Outcome: contract.Committed, Culprit: contract.NoCulprit}
	case errors.Is(err, contract.ErrClaimLost):
		return contract.Result{Outcome: contract.NotCommitted, Class: contract.ClassClaimLost, Culprit: contract.NoCulprit, Err: err}
	case c.store.keys.Classify(err) != contract.ClassPermanent && c.store.detour.after(ctx, err):
		c.unrecorded = err
		return contract.Result{Outcome: contract.Committed, Culprit: contract.NoCulprit}
	default:
		c.store.keepOpen(c.key, &openKey{c.claim.Token, &ending})
		return contract.Result{Outcome: contract.CommitUnknown, Culprit: contract.NoCulprit, Err: err}
	}
}

// ending is how the key ends with what the flight did.
func (c *keyedCall) ending(e *contract.Ending) contract.KeyEnding {
	out := contract.KeyEnding{Event: contract.KeyComplete, Keep: c.store.policy.Keep}
	switch {
	case len(e.Trim) > 0: // nobody was called
		out.Event = contract.KeyRelease
	case c.as != contract.Applied && c.answer.Unknown():
		out.Event = contract.KeyAbandon // it failed, and yet the effect may be there
	case c.as != contract.Applied:
		out.Event, out.Result = contract.KeyFail, failedWith(c.as, reasonIn(e.Rows))
	}
	return out
}

// reasonIn is why the message ended so.
func reasonIn(rows []contract.Row) semel.Reason {
	for i := range rows {
		if !rows[i].Repeat {
			return rows[i].Reason
		}
	}
	return semel.ReasonNone
}

// end ends the key; the lease is extended until the store has answered.
func (c *keyedCall) end(ctx context.Context, e contract.KeyEnding) error {
	if c.answer.State != contract.KeyClaimed {
		c.claim.LetGo()
		return nil
	}
	asking, cancel := c.store.detour.within(ctx)
	defer cancel()
	if n := c.store.reporter; n != nil && !c.store.detour.open() {
		var over func()
		c.claim.Refused, over = n.unrecorded(c.key)
		defer over()
	}
	return c.claim.End(asking, e)
}
