package calls

import (
	"time"

	"github.com/semel-go/semel/store"
)

// Ledger is what a row remembers of its calls; the statements of SQL stores say the same.
type Ledger struct {
	// Started are calls that were begun, Finished those of which it is known what became.
	Started, Finished int
	// First is when the first of them was begun, zero if none was, Unknown if the store's clock was
	// ahead then.
	First time.Time
	// Token is that of the claim under which the last one was begun, 0 after its end.
	Token store.Token
}

// Start notes that a call is about to be made under a claim that stands. The same claim
// asked again counts once.
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

// End notes what became of a call when the claim with this token ends.
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
