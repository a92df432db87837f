// Package ledger compares the log of effects with the messages that were sent. All fault tests use this package.
package ledger

import (
	"fmt"
	"iter"
)

// Balance compares effects with messages. Each sent message must take effect exactly once.
type Balance struct {
	// Expected is the number of messages. Applied is the number of messages that are in the effect log.
	Expected int `json:"expected"`
	Applied  int `json:"applied"`
	// Lost is the number of messages that have no effect and are not stuck. Doubled is the number of effects
	// beyond the first effect of a message. Stuck is the number of messages that were parked, still in
	// flight, or not completed. Foreign is the number of effects of messages that were never sent.
	Lost    int `json:"lost"`
	Doubled int `json:"doubled"`
	Stuck   int `json:"stuck"`
	Foreign int `json:"foreign"`
}

// Weigh compares the effects with the sent messages. The iterator sent yields each message once. A stuck message needs
// no effect.
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

// Wrong returns an error that lists the wrong counts, or nil.
func (b Balance) Wrong() error {
	if b.Lost != 0 || b.Doubled != 0 || b.Stuck != 0 || b.Foreign != 0 || b.Applied != b.Expected {
		return fmt.Errorf("lost %d, doubled %d, stuck %d, foreign %d, applied %d of %d", b.Lost, b.Doubled, b.Stuck, b.Foreign, b.Applied, b.Expected)
	}
	return nil
}

// None returns an error unless count is 0. The parameter what names the counted things.
func None(count int, what string) error {
	if count != 0 {
		return fmt.Errorf("%d %s", count, what)
	}
	return nil
}

// AtLeast returns an error if count is less than minimum, because the ledger then proves nothing. The parameter what
// names the counted things.
func AtLeast(minimum, count int, what string) error {
	if count < minimum {
		return fmt.Errorf("only %d %s, not %d: no proof", count, what, minimum)
	}
	return nil
}
