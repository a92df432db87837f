package admin

import "context"

// Notifier is implemented by a store with Leases that tells processes when rows are due, so that they need to
// poll less often. Notifications can be lost, and a notification can come although no row is due. A listener
// therefore still polls from time to time.
type Notifier interface {
	// Listen calls due when rows of the consumer may be due, and once when it starts to listen. Listen
	// returns nil when ctx ends. due must not block and must be safe for concurrent use. After an error the
	// caller may call Listen again. semel.ErrUnsupported means that notifications are not configured.
	Listen(ctx context.Context, consumer string, due func()) error
	// Notify tells listeners that rows of the consumer are due. Call Notify after the commit that made the
	// rows due, because notifications within the transaction would serialize all commits. If notifications
	// are not configured, Notify does nothing.
	Notify(ctx context.Context, consumer string) error
}
