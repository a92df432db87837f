// Package calls holds the rules for calls that handlers make outside of a transaction: whether
// another call may be made, what a response proves, and what a row remembers about its calls.
// The package performs no calls itself, so the simulator can check the rules that consumers
// and stores follow.
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
	// Window is how long the system recognizes a key after the first call: Always means
	// without limit, Never not at all.
	Window time.Duration
	// Timeout is the longest time that a call may take to arrive.
	Timeout time.Duration
	// Asks: the system can be asked for the outcome of earlier calls.
	Asks bool
	// Once: responses are applied in a transaction, so a call that took effect must not be
	// made again.
	Once bool
}

// Forgotten reports whether the system may no longer recognize the key by the time that a call
// made now arrives. since is the age of the first call.
func (r Rule) Forgotten(since time.Duration) bool {
	return r.Window != Always && since >= r.Window-r.Timeout
}

// Ago returns the age of the first call; measured is the age by the store's clock. A start in
// the future means that the clock was set back, so the age is unknown, and Ago returns
// Unmeasured, which is longer than any window. The same holds for the epoch, which stores
// write for an unknown time.
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

// older is longer than the age of any call, and shorter than the time since the epoch.
const older = 20 * 365 * 24 * time.Hour

// Unknown returns the time that stores write for a first call with an unknown time: the epoch.
func Unknown() time.Time { return time.Unix(0, 0) }

// Known returns first, or Unknown if the store's clock was ahead when first was recorded.
func Known(first, now time.Time) time.Time {
	if first.Sub(now) > timing.ClockSlack {
		return Unknown()
	}
	return first
}

// Unmeasured is the age of a call with an unknown time. Unmeasured is longer than any window,
// and small enough to add a duration without overflow.
const Unmeasured = Always / 4

// Step is the next action for a call whose start has been recorded.
type Step uint8

// The steps.
const (
	// Make the call.
	Make Step = iota
	// Ask for the outcome of the earlier calls, and make the call only if they had no effect.
	Ask
	// GiveUp: the outcome of the earlier calls is unknown, and the system cannot be asked.
	GiveUp
	// Nothing: the call was already made; only its result is to be recorded.
	Nothing
	// Leave the call alone: another process may hold the claim.
	Leave
	// Keep the earlier effect: a repetition was requested, but is not allowed.
	Keep
)

// Claim tracks the calls that a process makes under one claim. The zero value is ready to use.
// Outcome and Released may be called concurrently with the other methods.
type Claim struct {
	outcome atomic.Uint32
	done    bool
	// unsure: the outcome of an earlier call under this claim is unknown. The row counts that
	// call and the next one as one call.
	unsure bool
}

func (c *Claim) note(o store.CallOutcome) { c.outcome.Store(uint32(o)) }

// Starting records that the start of a call is about to be written; no call is made yet.
func (c *Claim) Starting() {
	switch {
	case c.done:
	case c.Outcome() == store.CallUnknown:
		c.unsure = true
	default:
		c.note(store.CallNotMade)
	}
}

// Next returns the next step after the store recorded the start of a call. ago is the time
// since the store was asked, and left the remaining lease by a cautious estimate; both matter
// because the process may have been suspended in between.
func (c *Claim) Next(s store.CallStarted, r Rule, ago, left time.Duration) Step {
	forgotten := r.Forgotten(s.Since + ago)
	switch {
	case c.done: // and the store has not answered that this is recorded
		return Nothing
	case left <= 0: // another process may call, and the system forget the key before this call arrives
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

// Happened records that an earlier call took effect.
func (c *Claim) Happened() {
	c.note(store.CallDecided)
	c.done = true
}

// DidNotHappen returns the next step when no earlier call took effect. left is the lease that
// remains after that question.
func (c *Claim) DidNotHappen(left time.Duration) Step {
	if left <= 0 {
		return Leave
	}
	return Make
}

// Making records that a call is about to be made.
func (c *Claim) Making() { c.note(store.CallUnknown) }

// Made records the result of a call. A response that came too late does not count, whatever
// its content.
func (c *Claim) Made(late bool, err error) {
	o := OutcomeOf(late, err)
	if o == store.CallFailed && c.unsure {
		o = store.CallUnknown
	}
	c.note(o)
	c.done = err == nil && o == store.CallDecided
}

// Outcome returns the outcome of the call to record when the claim ends.
func (c *Claim) Outcome() store.CallOutcome { return store.CallOutcome(c.outcome.Load()) }

// Released returns the outcome to record when the claim is given back. A call that took effect
// without being recorded counts as unknown, because the next claimant does not know of it.
func (c *Claim) Released() store.CallOutcome {
	if c.Outcome() == store.CallDecided {
		return store.CallUnknown
	}
	return c.Outcome()
}

// OutcomeOf classifies the result err of a call. late means that the result came too late.
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
