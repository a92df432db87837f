package calls

import (
	"time"

	"github.com/semel-go/semel/store"
)

// Ledger is a row's record of its calls: how many were made, and which outcomes are known. The
// statements of the SQL stores implement the same rules.
type Ledger struct {
	// Started counts the calls that were begun, Finished those with a known outcome.
	Started, Finished int
	// First is the time of the first call: zero if there was none, Unknown if the store's
	// clock was ahead at that time.
	First time.Time
	// Token is the token of the claim under which the last call was begun; 0 after that claim
	// ended.
	Token store.Token
}

// Start records that a call is about to be made under a valid claim. Repeated starts under one
// claim count once.
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
