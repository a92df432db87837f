package admin

import (
	"context"

	"github.com/semel-go/semel/store"
)

// IntentHolder is implemented by an Inbox in which operators can hold back waiting rows. Acts are recorded
// as those of an Inbox.
type IntentHolder interface {
	// Suppress parks a waiting row that is not in progress, and its marker, with
	// semel.ReasonSuppressed. Requeue makes it due again. semel.ErrChanged: the row has another
	// revision. semel.ErrState: its state does not allow it. Nothing is changed then.
	Suppress(ctx context.Context, number, revision int64, a store.Act) error
}
