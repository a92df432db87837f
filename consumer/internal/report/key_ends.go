package report

import (
	"time"

	"github.com/semel-go/semel"
)

// partKeys is the reason of the event EventNotReady while the key store fails to record that calls have ended. Until
// the lease of the key can no longer be extended, the key store is asked again to record the end of the call. If all
// workers wait for the key store at the same time, no worker claims a key, so no failed claim reports the outage, and
// only this event does.
const partKeys = "keys"

// FollowEnd returns two functions that report attempts to record the outcome of one claim. The function refused must be
// called when the store did not record the outcome: refused reports the first failure, each further cause, and one
// failure a minute. The function over must be called when no further attempt will be made.
func (n *Reporter) FollowEnd(key semel.Key) (refused func(error, time.Duration), over func()) {
	var reported time.Time // time of the last report about this key
	of := outage{causes: map[string]bool{}}
	refused = func(err error, wait time.Duration) {
		now, first, why := time.Now(), reported.IsZero(), Cause(err)
		another := of.addCause(kindOf(why))
		if !another && now.Sub(reported) < outageEvery {
			return
		}
		reported = now
		if n.endRefused(first, why) || another && !first && n.mayLogOutage(partKeys+"\x00cause") {
			n.logger.Warn("the store of the keys does not record calls that were made; each waits with its worker, and is asked for again", "consumer", n.consumer, "id", key.ID, "wait", Rounded(wait), "error", why)
		}
		n.Notify(semel.Event{Kind: semel.EventNotReady, Key: key, Reason: partKeys, Messages: 1, Wait: wait, Err: err})
	}
	over = func() {
		if !reported.IsZero() && n.endOver() {
			n.logger.Info("the store of the keys holds up no end of a call any more", "consumer", n.consumer)
			n.Notify(semel.Event{Kind: semel.EventReady, Reason: partKeys})
		}
	}
	return refused, over
}

// endRefused counts a claim if its end failed for the first time, and reports whether the failure must be logged.
func (n *Reporter) endRefused(first bool, why string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.failsAt(partKeys, why)
	if first {
		n.unended++
	}
	return n.flood.count(partKeys) == 1
}

// endOver records that no further attempt is made to end a claim, and reports whether no other claim waits for its end.
func (n *Reporter) endOver() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.unended--; n.unended > 0 {
		return false
	}
	n.setWorking(partKeys)
	return true
}
