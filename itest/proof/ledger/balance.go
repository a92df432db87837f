// Package ledger compares the effect log with the sent messages, for all proofs.
package ledger

import (
	"fmt"
	"iter"
)

// Balance compares effects with messages: each sent message must take effect once.
type Balance struct {
	// Expected is the number of messages, Applied the number of those in the effect log.
	Expected int `json:"expected"`
	Applied  int `json:"applied"`
	// Lost messages have no effect and no other record. Doubled are effects beyond the first
	// of a message. Stuck messages were parked, left in flight or not settled. Foreign are
	// effects of messages that were never sent.
	Lost    int `json:"lost"`
	Doubled int `json:"doubled"`
	Stuck   int `json:"stuck"`
	Foreign int `json:"foreign"`
}

// Weigh compares the effects with the sent messages, each listed once. Stuck messages need no
// effect.
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

// Wrong returns what is wrong, or nil.
func (b Balance) Wrong() error {
	if b.Lost != 0 || b.Doubled != 0 || b.Stuck != 0 || b.Foreign != 0 || b.Applied != b.Expected {
		return fmt.Errorf("lost %d, doubled %d, stuck %d, foreign %d, applied %d of %d", b.Lost, b.Doubled, b.Stuck, b.Foreign, b.Applied, b.Expected)
	}
	return nil
}

// None returns an error if there are any of what must not be.
func None(there int, what string) error {
	if there != 0 {
		return fmt.Errorf("%d %s", there, what)
	}
	return nil
}

// AtLeast returns an error if something happened too rarely for the ledger to be a proof.
func AtLeast(want, there int, what string) error {
	if there < want {
		return fmt.Errorf("only %d %s, not %d: no proof", there, what, want)
	}
	return nil
}
