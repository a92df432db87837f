package consumer

import (
	"time"

	"github.com/semel-go/semel"
)

// partKeys is what does not work while calls have ended and the store of their keys does not
// record that. Such an end is asked for again for as long as its lease can be extended, and
// where all workers have one nobody claims a key, so that nobody else would notice.
const partKeys = "keys"

// unrecorded follows the end of one claim: refused tells that the store has not recorded it,
// at the first time, for each further cause and once a minute, and over that it is asked for no
// more.
func (n *reporter) unrecorded(key semel.Key) (refused func(error, time.Duration), over func()) {
	var told time.Time // when it was told of this end last
	of := outage{told: map[string]bool{}}
	refused = func(err error, wait time.Duration) {
		now, first, why := time.Now(), told.IsZero(), cause(err)
		another := of.learns(kindOf(why))
		if !another && now.Sub(told) < outageEvery {
			return
		}
		told = now
		if n.endRefused(first, why) || another && !first && n.seldom(partKeys+"\x00cause") {
			n.logger.Warn("the store of the keys does not record calls that were made; each waits with its worker, and is asked for again", "consumer", n.consumer, "id", key.ID, "wait", rounded(wait), "error", why)
		}
		n.tell(semel.Event{Kind: semel.EventNotReady, Key: key, Reason: partKeys, Messages: 1, Wait: wait, Err: err})
	}
	over = func() {
		if !told.IsZero() && n.endOver() {
			n.logger.Info("the store of the keys holds up no end of a call any more", "consumer", n.consumer)
			n.tell(semel.Event{Kind: semel.EventReady, Reason: partKeys})
		}
	}
	return refused, over
}

// endRefused counts an end that is refused for the first time, and says whether it is to be
// logged.
func (n *reporter) endRefused(first bool, why string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.failsAt(partKeys, why)
	if first {
		n.unended++
	}
	return n.flood.count(partKeys) == 1
}

// endOver takes that one of them is asked for no more, and says whether it was the last.
func (n *reporter) endOver() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.unended--; n.unended > 0 {
		return false
	}
	n.works(partKeys)
	return true
}
