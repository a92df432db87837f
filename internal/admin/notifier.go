package admin

import "context"

// Notifier is implemented by a store with Leases that notifies processes when rows are due, so that the processes poll
// less often. A notification can be lost, and can come although no row is due. A listener therefore still polls from
// time to time.
type Notifier interface {
	// Listen calls the function due when rows of the consumer may be due, and once when Listen begins. Listen returns
	// nil when ctx ends. The function due must not block and must be safe for concurrent use. After an error the caller
	// may call Listen again. semel.ErrUnsupported means that notifications are not configured.
	Listen(ctx context.Context, consumer string, due func()) error
	// Notify notifies listeners that rows of the consumer are due. Call Notify after the commit that made the rows due,
	// because notifications within the transaction would serialize all commits. If notifications are not configured,
	// Notify does nothing.
	Notify(ctx context.Context, consumer string) error
}
