package contract

import "context"

// Notifier is an optional ability of a store with Leases: who waits for rows is told
// when some may be due, and need not ask in vain until then. Notifications are lost,
// and come for nothing, now and then: whoever listens asks from time to time all the
// same.
type Notifier interface {
	// Listen calls due whenever rows of the consumer may be due, and first when it
	// hears, until ctx ends; then it returns nil. due does not block, and may be called
	// by several goroutines at once. An error says why nothing is heard, or no more; who called may listen again.
	// semel.ErrUnsupported: it was not set up.
	Listen(ctx context.Context, consumer string, due func()) error
	// Notify tells those who listen that rows of the consumer are due. It is called
	// after the commit by which they are: one that goes with a commit would have all
	// commits wait for one another. Where it was not set up it does nothing.
	Notify(ctx context.Context, consumer string) error
}
