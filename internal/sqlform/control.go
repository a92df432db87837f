package sqlform

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// LimitFault says why a limit cannot be kept, nil if it can.
func LimitFault(perSecond int) error {
	if perSecond < 0 {
		return fmt.Errorf("a limit of %d messages a second is none; give 1 or more, or 0 for no limit", perSecond)
	}
	return nil
}

// ErrControlUnwritten: a table took what was set for a consumer, and has it not.
var ErrControlUnwritten = errors.New("what was set was not written, which a trigger or a rule of the table of controls prevents: drop it; nothing was changed")

// OfConsumer is an act on a consumer as it is recorded: it is of no row, so that its
// text says of which consumer.
func OfConsumer(a store.Act, consumer string) store.Act {
	a.Row, a.Why = 0, "consumer "+consumer+": "+a.Why
	return a
}

// OfLimit is an act that sets a limit as it is recorded.
func OfLimit(a store.Act, consumer string, perSecond int) store.Act {
	wanted := "no limit"
	if perSecond > 0 {
		wanted = fmt.Sprintf("%d messages a second", perSecond)
	}
	return OfConsumer(a, consumer+", "+wanted)
}

// OfGeneration is an act on a generation of a consumer as it is recorded.
func OfGeneration(a store.Act, consumer string, number int64) store.Act {
	return OfConsumer(a, fmt.Sprintf("%s, generation %d", consumer, number))
}
