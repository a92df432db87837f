package sqlform

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// LimitFault returns an error if a limit is invalid.
func LimitFault(perSecond int) error {
	if perSecond < 0 {
		return fmt.Errorf("%d messages a second is not a valid limit; use 1 or more, or 0 for no limit", perSecond)
	}
	return nil
}

// ErrControlUnwritten means that the setting of a consumer is missing although the statement that writes the
// setting succeeded.
var ErrControlUnwritten = errors.New("the setting was not written, because a trigger or a rule of the table of controls prevents it: drop the trigger or rule; nothing was changed")

// OfConsumer returns the audit record of an operator's change to a consumer. The result is the record a, without a row
// number, and with the consumer's name in Why.
func OfConsumer(a store.Act, consumer string) store.Act {
	a.Row, a.Why = 0, "consumer "+consumer+": "+a.Why
	return a
}

// OfLimit returns the audit record of an operator's change to a consumer's limit. The result is the record a, with the
// consumer's name and the new limit in Why.
func OfLimit(a store.Act, consumer string, perSecond int) store.Act {
	wanted := "no limit"
	if perSecond > 0 {
		wanted = fmt.Sprintf("%d messages a second", perSecond)
	}
	return OfConsumer(a, consumer+", "+wanted)
}

// OfGeneration returns the audit record of an operator's change to a generation. The result is the record a, with the
// consumer's name and the generation's number in Why.
func OfGeneration(a store.Act, consumer string, number int64) store.Act {
	return OfConsumer(a, fmt.Sprintf("%s, generation %d", consumer, number))
}
