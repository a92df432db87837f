package admin

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// Control contains the settings that operators have made for a consumer. The zero Control has no pause and no limit.
type Control struct {
	// Paused means that the consumer neither fetches from its source nor claims rows of its inbox.
	Paused bool
	// Pause contains who last paused or resumed the consumer, when, and why.
	Pause Order
	// PerSecond is the maximum number of messages per second for each process; 0 means no limit.
	PerSecond int
	// Limit contains who last changed the limit, when, and why.
	Limit Order
}

// Order is the record of an operator's command: who changed a setting, when, and why. Order is zero if the setting was
// never changed.
type Order struct {
	By, Why string
	// At is the time of the change, by the store's clock.
	At time.Time
}

// Controls is implemented by a store that keeps the operators' settings of each consumer. Processes read the settings
// before they fetch, and then every few seconds. The transaction of each change also writes an audit record (store.Act)
// without a row. The Why of the audit record starts with the consumer's name. If a method of Controls returns an error,
// nothing has changed, unless the response of a commit was lost.
type Controls interface {
	// Control returns the settings that operators have made for a consumer, or the zero value if there are none.
	Control(ctx context.Context, consumer string) (Control, error)
	// Pause pauses or resumes a consumer. Pause does not change the limit.
	Pause(ctx context.Context, consumer string, paused bool, a store.Act) error
	// Limit sets the maximum number of messages per second for each process of a consumer. If perSecond is 0, there is
	// no limit; if perSecond is negative, Limit returns an error. Limit does not change a pause.
	Limit(ctx context.Context, consumer string, perSecond int, a store.Act) error
	// Consumers returns the sorted names of all consumers that have sources or settings in the store.
	Consumers(ctx context.Context) ([]string, error)
}
