package admin

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// Control contains the settings that operators have made for a consumer. With the zero value the
// consumer runs without limits.
type Control struct {
	// Paused consumers neither fetch from their source nor claim from their inbox.
	Paused bool
	// Pause says who last paused or resumed the consumer.
	Pause Order
	// PerSecond is the maximum number of messages per second for each process; 0 means no limit.
	PerSecond int
	// Limit says who last changed the limit.
	Limit Order
}

// Order says who changed a setting and why. Order is zero if the setting was never changed.
type Order struct {
	By, Why string
	// At is by the store's clock.
	At time.Time
}

// Controls is implemented by a store that keeps the operators' settings of each consumer. Processes
// read them before they fetch, and then every few seconds. The transaction of each change also writes
// an audit record (store.Act) without a row, whose Why starts with the consumer's name.
// After an error nothing has changed, unless the response of a commit was lost.
type Controls interface {
	// Control returns the settings of a consumer; the zero value if there are none.
	Control(ctx context.Context, consumer string) (Control, error)
	// Pause pauses or resumes a consumer. Its limit stays.
	Pause(ctx context.Context, consumer string, paused bool, a store.Act) error
	// Limit sets the maximum number of messages per second for each process of a consumer; 0 means
	// no limit, and a negative number is an error. A pause stays.
	Limit(ctx context.Context, consumer string, perSecond int, a store.Act) error
	// Consumers returns the sorted names of all consumers that have a scope or settings.
	Consumers(ctx context.Context) ([]string, error)
}
