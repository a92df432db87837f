// Package ledger is what the proofs share when they add up: the effect log and the balance.
package ledger

import (
	"fmt"
	"iter"
)

// Balance is what every proof is about: of the messages that were sent, each
// took effect once.
type Balance struct {
	// Expected are messages, Applied those of them in the effect log.
	Expected int `json:"expected"`
	Applied  int `json:"applied"`
	// Lost messages have no effect and stand nowhere; Doubled are effects beyond
	// the first of a message; Stuck ones were set aside, left in flight or not
	// settled; Foreign are messages with an effect that nobody sent.
	Lost    int `json:"lost"`
	Doubled int `json:"doubled"`
	Stuck   int `json:"stuck"`
	Foreign int `json:"foreign"`
}

// Weigh compares the effects of each message with the messages that were sent,
// each named once. What is stuck may have no effect.
func Weigh(effects map[string]int, sent iter.Seq[string], stuck int) Balance {
	b := Balance{Stuck: stuck}
	for id := range sent {
		b.Expected++
		if effects[id] > 0 {
			b.Applied++
		}
	}
	for _, n := range effects {
		b.Doubled += n - 1
	}
	b.Lost = max(b.Expected-b.Applied-stuck, 0)
	b.Foreign = len(effects) - b.Applied
	return b
}

// Wrong says what is wrong; nil if nothing is.
func (b Balance) Wrong() error {
	if b.Lost != 0 || b.Doubled != 0 || b.Stuck != 0 || b.Foreign != 0 || b.Applied != b.Expected {
		return fmt.Errorf("lost %d, doubled %d, stuck %d, foreign %d, applied %d of %d", b.Lost, b.Doubled, b.Stuck, b.Foreign, b.Applied, b.Expected)
	}
	return nil
}

// AtLeast says that something happened too rarely for a ledger to be a proof;
// nil if it did not.
func AtLeast(want, there int, what string) error {
	if there < want {
		return fmt.Errorf("only %d %s, not %d: no proof", there, what, want)
	}
	return nil
}
