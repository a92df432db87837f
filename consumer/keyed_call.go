package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/timing"
)

// keyedCall is a flight of one message under its key. Nothing is open.
type keyedCall struct {
	store  *keyed
	key    semel.Key
	as     contract.Outcome
	lease  time.Duration
	token  contract.Token
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

	mutex sync.Mutex
	until time.Time   // when the lease surely lasts no longer; guarded by mutex
	timer *time.Timer // extends; nil: nothing is extended any more; guarded by mutex
	lost  func(error) // ends the handler's context; guarded by mutex
}

var errKeyLost = fmt.Errorf("the lease of the key is over, or may be: %w", contract.ErrClaimLost)

// Tx implements contract.Batch.
func (c *keyedCall) Tx(int) Call { return Call{} }

// Kill implements contract.Batch: a handler that does not end loses its claim when its lease
// ends.
func (c *keyedCall) Kill() { c.letGo() }

// ClassifyHandler implements contract.HandlerClassifier: whatever a handler meets, it is none
// of the store's.
func (c *keyedCall) ClassifyHandler(context.Context, error) contract.Class {
	return contract.ClassRetry
}

// extensions is how often in a lease it is extended.
const extensions = 3

// hold begins to extend the lease, which was asked for then.
func (c *keyedCall) hold(asked time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	left := min(c.answer.Left, c.lease)
	c.asked = asked
	c.until = asked.Add(left)
	c.timer = time.AfterFunc(left/extensions, c.extend)
}

// letGo extends the lease no longer.
func (c *keyedCall) letGo() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// extend extends once, and again after a third of the lease. The handler's context ends when
// the lease is another's, or is over as far as is known because the store does not answer.
func (c *keyedCall) extend() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), c.lease/extensions)
	defer cancel()
	err := c.store.keys.ExtendKey(ctx, c.key, c.token, c.lease)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case c.timer == nil: // it has ended meanwhile
		return
	case err == nil:
		c.until = began.Add(c.lease)
	case !errors.Is(err, contract.ErrClaimLost) && c.store.detour.open(): // it goes on without
		c.until = time.Now().Add(c.lease)
	case errors.Is(err, contract.ErrClaimLost) || !time.Now().Before(c.until):
		c.timer = nil
		if c.lost != nil {
			c.lost(errKeyLost)
		}
		return
	}
	c.timer.Reset(max(0, c.lease/extensions-time.Since(began)))
}

// holds reports whether the lease still lasts, as far as is known, and has the handler's
// context end when it does no more.
func (c *keyedCall) holds(lost func(error)) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lost = lost
	return c.timer != nil && time.Now().Before(c.until)
}

// call makes the call, unless nobody may.
func (c *keyedCall) call(ctx context.Context, config *Config, lost func(error), m *semel.Message, run func() error) error {
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
		return contract.Result{Outcome: contract.Committed, Culprit: contract.NobodyNamed}
	}
	ending := c.ending(&e)
	switch err := c.end(ctx, ending); {
	case err == nil:
		return contract.Result{Outcome: contract.Committed, Culprit: contract.NobodyNamed}
	case errors.Is(err, contract.ErrClaimLost):
		return contract.Result{Outcome: contract.NotCommitted, Class: contract.ClassClaimLost, Culprit: contract.NobodyNamed, Err: err}
	case c.store.keys.Classify(err) != contract.ClassPermanent && c.store.detour.after(ctx, err):
		c.unrecorded = err
		return contract.Result{Outcome: contract.Committed, Culprit: contract.NobodyNamed}
	default:
		c.store.keepOpen(c.key, &openKey{c.token, &ending})
		return contract.Result{Outcome: contract.CommitUnknown, Culprit: contract.NobodyNamed, Err: err}
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

// Waits between the tries to end a key.
const (
	firstEndWait = 20 * time.Millisecond
	mostEndWait  = time.Second
)

// end ends the key, and asks again while the store does not answer and ctx lasts; the lease is
// extended meanwhile.
func (c *keyedCall) end(ctx context.Context, e contract.KeyEnding) (err error) {
	defer c.letGo()
	if c.answer.State != contract.KeyClaimed {
		return nil
	}
	asking, cancel := c.store.detour.within(ctx)
	defer cancel()
	for wait := firstEndWait; ; wait = min(2*wait, mostEndWait) {
		err = c.store.keys.EndKey(asking, c.key, c.token, e)
		if err == nil || errors.Is(err, contract.ErrClaimLost) || c.store.keys.Classify(err) == contract.ClassPermanent || !timing.Wait(asking, wait) {
			return err
		}
	}
}
