package calls

import (
	"time"

	"github.com/semel-go/semel/store"
)

// Ledger is a row's record of its calls: the number of calls, and the known outcomes. The statements of the
// SQL stores implement the same rules.
type Ledger struct {
	// Started is the number of calls that were started. Finished is the number of calls whose outcome is
	// known.
	Started, Finished int
	// First is the time of the first call. First is zero if there was no call, and Unknown if the store's
	// clock was ahead at that time.
	First time.Time
	// Token is the token of the claim under which the last call was started. After that claim has ended,
	// Token is 0.
	Token store.Token
}

// Start records that a call will be made under a valid claim. Several starts under one claim count as one
// call.
func (l *Ledger) Start(t store.Token, now time.Time) store.CallStarted {
	if l.Token != t {
		l.Token = t
		l.Started++
	}
	if l.First.IsZero() {
		l.First = now
	}
	l.First = Known(l.First, now)
	return store.CallStarted{Stands: true, Started: l.Started, Finished: l.Finished, Since: Ago(now.Sub(l.First))}
}

// End records the outcome of the calls when the claim with this token ends.
func (l *Ledger) End(o store.CallOutcome, t store.Token) {
	begun := t != 0 && l.Token == t
	switch {
	case o == store.CallNone:
		return
	case o == store.CallDecided:
		l.Finished = l.Started
	case o == store.CallFailed && begun:
		l.Finished++
	case o == store.CallNotMade && begun:
		if l.Started--; l.Started == 0 {
			l.First = time.Time{}
		}
	}
	l.Token = 0
}
