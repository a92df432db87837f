// Package calls decides what may be done about calls that are made for messages outside of
// any transaction, and what is known of them: whether another may be made, what an answer
// says, what a row remembers. It does nothing itself, so that the simulator proves the
// rules that consumers and stores follow.
package calls

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

// The ends of Rule.Window.
const (
	Always time.Duration = 1<<63 - 1
	Never  time.Duration = -1
)

// Rule is what is known of the other side.
type Rule struct {
	// Window is for how long it knows a key, from the first call: Always for ever, Never
	// not at all.
	Window time.Duration
	// Timeout is how long a call may take to arrive.
	Timeout time.Duration
	// Asks: it can be asked what became of earlier calls.
	Asks bool
	// Once: what it answers is applied in a transaction, so that what was done is never done
	// again.
	Once bool
}

// Forgotten reports whether the other side may not know the key of a first call so long
// ago by the time that a call made now arrives there.
func (r Rule) Forgotten(since time.Duration) bool {
	return r.Window != Always && since >= r.Window-r.Timeout
}

// Ago is how long ago a first call was begun, by a clock that says that it was so long ago. If the
// clock says that the call is to begin later, the clock was set back since, and the time that
// passed is unknown: it counts as longer than any window. So does the epoch, which stores write for an
// unknown time.
func Ago(measured time.Duration) time.Duration {
	if measured < -timing.ClockSlack || measured > older {
		return Unmeasured
	}
	return max(measured, 0)
}

// Text says how long ago a first call was begun, as Ago measured it.
func Text(since time.Duration) string {
	if since >= Unmeasured {
		return "before the store's clock was set back"
	}
	return since.Round(time.Second).String() + " ago"
}

// older is more than the age of any call, and less than the time since the epoch.
const older = 20 * 365 * 24 * time.Hour

// Unknown stands for the time of a first call if it is not known: the epoch, as in the tables.
func Unknown() time.Time { return time.Unix(0, 0) }

// Known is a time of a first call as it stands, or Unknown if the store's clock was ahead then.
func Known(first, now time.Time) time.Time {
	if first.Sub(now) > timing.ClockSlack {
		return Unknown()
	}
	return first
}

// Unmeasured is the age of a call whose time is unknown. It is longer than any window, and small
// enough to add a duration to it.
const Unmeasured = Always / 4

// Step is what is to be done about a call whose start is written down.
type Step uint8

// The steps.
const (
	// Make it.
	Make Step = iota
	// Ask what became of those before it, and make it only if they had no effect.
	Ask
	// GiveUp: nobody knows what became of those before it, and nobody can be asked.
	GiveUp
	// Nothing: it was made, and what it did is to be recorded.
	Nothing
	// Leave it: the claim may be another's.
	Leave
	// Keep what was done before: it was to be done again, and must not be.
	Keep
)

// Claim is what a process knows of the calls under one claim of its. The zero value knows
// of none. Outcome and Released may be called beside the others.
type Claim struct {
	outcome atomic.Uint32
	done    bool
	// unsure: it is not known what became of an earlier call under it, which the row counts
	// as one with the next.
	unsure bool
}

func (c *Claim) note(o store.CallOutcome) { c.outcome.Store(uint32(o)) }

// Starting is said before the start of a call is written down: none is made yet.
func (c *Claim) Starting() {
	switch {
	case c.done:
	case c.Outcome() == store.CallUnknown:
		c.unsure = true
	default:
		c.note(store.CallNotMade)
	}
}

// Next says what to do about a call of which the store was asked so long ago to write down
// the start; left is how long the claim's lease surely lasts. A process may have been frozen
// meanwhile.
func (c *Claim) Next(s store.CallStarted, r Rule, ago, left time.Duration) Step {
	forgotten := r.Forgotten(s.Since + ago)
	switch {
	case c.done: // and the store has not answered that this is recorded
		return Nothing
	case left <= 0: // another may call, and the key be forgotten before this call arrives
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

// Happened is said when an earlier call is found to have had its effect.
func (c *Claim) Happened() {
	c.note(store.CallDecided)
	c.done = true
}

// DidNotHappen is said when none of the earlier calls is found to have had an effect; left
// is how long the lease surely lasts after that was asked.
func (c *Claim) DidNotHappen(left time.Duration) Step {
	if left <= 0 {
		return Leave
	}
	return Make
}

// Making is said before a call is made.
func (c *Claim) Making() { c.note(store.CallUnknown) }

// Made is said after a call, of which err says what became. What came too late was not
// heard, whatever it says.
func (c *Claim) Made(late bool, err error) {
	o := OutcomeOf(late, err)
	if o == store.CallFailed && c.unsure {
		o = store.CallUnknown
	}
	c.note(o)
	c.done = err == nil && o == store.CallDecided
}

// Outcome is what is known of the call when the claim ends.
func (c *Claim) Outcome() store.CallOutcome { return store.CallOutcome(c.outcome.Load()) }

// Released is Outcome of a claim that is given back. What took effect and is not recorded
// is not known to whoever claims it next.
func (c *Claim) Released() store.CallOutcome {
	if c.Outcome() == store.CallDecided {
		return store.CallUnknown
	}
	return c.Outcome()
}

// OutcomeOf is what is known of a call that returned err.
func OutcomeOf(late bool, err error) (o store.CallOutcome) {
	defer func() {
		if recover() != nil { // an error that cannot be read
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
