package admin

import "context"

// Notifier is implemented by a store with Leases that notifies processes of due rows, so that they
// need to poll less often. Notifications can be lost or be spurious; a listener still polls from
// time to time.
type Notifier interface {
	// Listen calls due when rows of the consumer may be due, and once when it starts to listen.
	// Listen returns nil when ctx ends. due must not block and is safe for concurrent use.
	// After an error the caller may call Listen again. semel.ErrUnsupported means that
	// notifications are not configured.
	Listen(ctx context.Context, consumer string, due func()) error
	// Notify notifies listeners that rows of the consumer are due. Notify is called after the
	// commit that made them due; notifications within the transaction would serialize all
	// commits. If notifications are not configured, Notify does nothing.
	Notify(ctx context.Context, consumer string) error
}
