package report

import (
	"time"

	"github.com/semel-go/semel"
)

// partKeys is the part that does not work while the store of the keys does not record the ends of
// calls. Each end is tried again for as long as its lease can be extended. If all workers wait for
// one, no key is claimed, and so no claim would report the outage.
const partKeys = "keys"

// FollowEnd returns two functions that report the end of one claim: refused, that the store has
// not recorded it, which is reported the first time, for each further cause and once a minute; and
// over, that the store is not asked for it any more.
func (n *Reporter) FollowEnd(key semel.Key) (refused func(error, time.Duration), over func()) {
	var reported time.Time // when this end was reported last
	of := outage{causes: map[string]bool{}}
	refused = func(err error, wait time.Duration) {
		now, first, why := time.Now(), reported.IsZero(), Cause(err)
		another := of.learns(kindOf(why))
		if !another && now.Sub(reported) < outageEvery {
			return
		}
		reported = now
		if n.endRefused(first, why) || another && !first && n.seldom(partKeys+"\x00cause") {
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

// endRefused counts an end that is refused for the first time, and reports whether it must be
// logged.
func (n *Reporter) endRefused(first bool, why string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.failsAt(partKeys, why)
	if first {
		n.unended++
	}
	return n.flood.count(partKeys) == 1
}

// endOver notes that the store is not asked for one of them any more, and reports whether that was
// the last.
func (n *Reporter) endOver() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.unended--; n.unended > 0 {
		return false
	}
	n.works(partKeys)
	return true
}
