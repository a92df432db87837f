// Package calls contains the rules for calls that handlers make outside of a transaction: whether another
// call may be made, what is known after a response, and what a row records about its calls. The package makes
// no calls itself, so the simulator can check the rules that consumers and stores follow.
package calls

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

// The special values of Rule.Window.
const (
	Always time.Duration = 1<<63 - 1
	Never  time.Duration = -1
)

// Rule describes the called system.
type Rule struct {
	// Window is how long the system recognises a key after the first call. Always means that the system never
	// forgets a key. Never means that the system recognises no keys.
	Window time.Duration
	// Timeout is the longest time that a call may take to arrive.
	Timeout time.Duration
	// Asks means that the system can be asked for the outcome of earlier calls.
	Asks bool
	// Once means that answers are applied in a transaction, so that a call that had its effect must not be made again.
	Once bool
}

// Forgotten reports whether the system may no longer recognise the key when a new call arrives. The parameter since is
// the age of the first call.
func (r Rule) Forgotten(since time.Duration) bool {
	return r.Window != Always && since >= r.Window-r.Timeout
}

// Ago returns the age of the first call. The parameter measured is the age by the store's clock. If the start of the
// call is in the future, the clock was set back and the age is unknown. If the age is unknown, Ago returns Unmeasured,
// which is longer than any window. Ago also returns Unmeasured for the epoch, which stores write for an unknown time.
func Ago(measured time.Duration) time.Duration {
	if measured < -timing.ClockSlack || measured > older {
		return Unmeasured
	}
	return max(measured, 0)
}

// Text formats an age that Ago returned.
func Text(since time.Duration) string {
	if since >= Unmeasured {
		return "before the store's clock was set back"
	}
	return since.Round(time.Second).String() + " ago"
}

// older is a duration that is longer than the age of any call, and shorter than the time since the epoch.
const older = 20 * 365 * 24 * time.Hour

// Unknown returns the epoch. Stores write the epoch for a first call whose time is unknown.
func Unknown() time.Time { return time.Unix(0, 0) }

// Known returns the time of the first call (the parameter first). If the store's clock was ahead when this time was
// recorded, Known returns Unknown.
func Known(first, now time.Time) time.Time {
	if first.Sub(now) > timing.ClockSlack {
		return Unknown()
	}
	return first
}

// Unmeasured is the age of a call whose time is unknown. Unmeasured is longer than any window, and so small that
// another duration can be added without overflow.
const Unmeasured = Always / 4

// Step is the next action for a call whose start has been recorded.
type Step uint8

// The steps.
const (
	// Make means that the call must be made.
	Make Step = iota
	// Ask means that the system must be asked for the outcome of the earlier calls. The call is made only if the
	// earlier calls had no effect.
	Ask
	// GiveUp means that the outcome of the earlier calls is unknown, and that the system cannot be asked.
	GiveUp
	// Nothing means that the call was already made, and that only its result must be recorded.
	Nothing
	// Leave means that no call may be made, because another process may have the claim.
	Leave
	// Keep means that a repetition was requested but is not allowed, so the earlier effect stays.
	Keep
)

// Claim contains the state of the calls that a process makes under one claim. The zero value is ready to use.
// Outcome and Released may be called concurrently with the other methods.
type Claim struct {
	outcome atomic.Uint32
	done    bool
	// unsure means that the outcome of an earlier call under this claim is unknown. The row counts the earlier call and
	// the next call as one call.
	unsure bool
}

func (c *Claim) note(o store.CallOutcome) { c.outcome.Store(uint32(o)) }

// Starting records that the start of a call will be written next. The call itself is not made yet.
func (c *Claim) Starting() {
	switch {
	case c.done:
	case c.Outcome() == store.CallUnknown:
		c.unsure = true
	default:
		c.note(store.CallNotMade)
	}
}

// Next returns the next step after the store has recorded the start of a call. The parameter ago is the time since the
// request to the store. The parameter left is a cautious estimate of the remaining lease. Next needs the parameters ago
// and left because the process may have been suspended since the request.
func (c *Claim) Next(s store.CallStarted, r Rule, ago, left time.Duration) Step {
	forgotten := r.Forgotten(s.Since + ago)
	switch {
	case c.done: // the store has not confirmed that the call is recorded
		return Nothing
	case left <= 0: // another process may call, and the system may forget the key before this call arrives
		return Leave
	case s.Again && (r.Once || forgotten):
		c.Happened()
		return Keep
	case !s.Unknown() && !c.unsure || !forgotten:
		return Make
	case r.Asks:
		return Ask
	}
	return GiveUp
}

// Happened records that an earlier call had its effect.
func (c *Claim) Happened() {
	c.note(store.CallDecided)
	c.done = true
}

// DidNotHappen returns the next step if no earlier call had an effect. The parameter left is the lease that remains
// after the system was asked.
func (c *Claim) DidNotHappen(left time.Duration) Step {
	if left <= 0 {
		return Leave
	}
	return Make
}

// Making records that a call will be made next.
func (c *Claim) Making() { c.note(store.CallUnknown) }

// Made records the result of a call. If the parameter late is true, the response came too late and does not count,
// whatever it says.
func (c *Claim) Made(late bool, err error) {
	o := OutcomeOf(late, err)
	if o == store.CallFailed && c.unsure {
		o = store.CallUnknown
	}
	c.note(o)
	c.done = err == nil && o == store.CallDecided
}

// Outcome returns the outcome of the call, which must be recorded when the claim ends.
func (c *Claim) Outcome() store.CallOutcome { return store.CallOutcome(c.outcome.Load()) }

// Released returns the outcome that must be recorded when the claim is released. If a call had its effect and the
// effect was not recorded, the outcome is unknown, because the next process that claims the row does not know of the
// call.
func (c *Claim) Released() store.CallOutcome {
	if c.Outcome() == store.CallDecided {
		return store.CallUnknown
	}
	return c.Outcome()
}

// OutcomeOf returns the outcome of a call whose result is err. If the parameter late is true, the result came too late.
func OutcomeOf(late bool, err error) (o store.CallOutcome) {
	defer func() {
		if recover() != nil { // a method of err panicked
			o = store.CallUnknown
		}
	}()
	var decided *semel.HandlerError
	switch {
	case late:
		return store.CallUnknown
	case err == nil:
		return store.CallDecided
	}
	for within := err; errors.As(within, &decided); within = decided.Err {
		if decided.Decision == semel.DecideUnknown {
			return store.CallUnknown
		}
	}
	if !errors.As(err, &decided) {
		return store.CallUnknown
	}
	switch decided.Decision {
	case semel.DecideRetry, semel.DecidePreconditionFailed:
		return store.CallFailed
	case semel.DecideDuplicate, semel.DecidePermanent, semel.DecidePark, semel.DecideDiscard:
		return store.CallDecided
	}
	return store.CallUnknown
}
