package contract

import (
	"context"
	"time"
)

// Control is what operators want of a consumer now. The zero value wants nothing:
// it takes what comes, as fast as it can.
type Control struct {
	// Paused: it takes nothing, neither from its source nor from its inbox.
	Paused bool
	// Pause says who paused or resumed it last.
	Pause Order
	// PerSecond is how many messages each of its processes may take in a second; 0:
	// no limit.
	PerSecond int
	// Limit says who set or lifted the limit last.
	Limit Order
}

// Order says who ordered something, and why; it is zero if nobody ever did.
type Order struct {
	By, Why string
	// At is by the store's clock.
	At time.Time
}

// Controls is an optional ability of a store: to keep what operators want of each
// consumer. Its processes read it before they take anything, and then every few
// seconds. What is set is recorded with an act, of no row, in the same transaction;
// its Why there begins with the consumer. After an error nothing has changed, unless
// the error is of a commit whose answer was lost.
type Controls interface {
	// Control returns what is wanted of a consumer; zero where nobody said anything.
	Control(ctx context.Context, consumer string) (Control, error)
	// Pause pauses a consumer, or lets it go on; a limit stays.
	Pause(ctx context.Context, consumer string, paused bool, a Act) error
	// Limit sets how many messages a second each process of a consumer may take, 0
	// for no limit; a pause stays. A negative number is an error.
	Limit(ctx context.Context, consumer string, perSecond int, a Act) error
	// Consumers returns the names, in their order, of all consumers that have a scope,
	// or of which something was wanted.
	Consumers(ctx context.Context) ([]string, error)
}
