package admin

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Recorder is an optional ability of an Inbox: to record what a person does to no one row.
type Recorder interface {
	// Record writes an act that changes nothing by itself; Act.Row is 0 if it is of no
	// row.
	Record(ctx context.Context, a store.Act) error
}

// ErrDueAlready is returned if a row that should be made due is due already. Nothing was changed or
// recorded. It wraps semel.ErrState.
var ErrDueAlready = fmt.Errorf("it is due already: %w", semel.ErrState)

// ErrOpen is returned if another row of the identity waits, is in progress, or may have been applied in
// part. Nothing was changed or recorded. It wraps semel.ErrConflict.
var ErrOpen = fmt.Errorf("another content of this identity is not closed: %w", semel.ErrConflict)

// Requeuer is implemented by an Inbox with Leases whose rows operators can make due again. Acts are
// recorded as those of an Inbox. semel.ErrChanged: the row has another revision. semel.ErrState: its
// state does not allow the act. Nothing is changed then.
type Requeuer interface {
	// Requeue makes a parked, dead-lettered or waiting row due now and sets its marker to Waiting.
	// ErrDueAlready: the row is due. semel.ErrConflict: the identity is applied, or another row of
	// it waits.
	Requeue(ctx context.Context, number, revision int64, a store.Act) error
	// Release ends the claim of a row in progress and makes the row due. The previous claimant can no
	// longer end its claim.
	Release(ctx context.Context, number, revision int64, a store.Act) error
	// Reopen sets a discarded row to StateParked, with its marker if that belongs to the row, so that
	// it can be retried. The row keeps its reason, or gets ReopenedReason if that is not a reason of
	// parked rows. The row is not put back into its line. semel.ErrState: MayReopen rejects the row.
	// semel.ErrConflict: MayRun rejects the row, or the identity has no marker, so that its outcome is
	// unknown.
	Reopen(ctx context.Context, number, revision int64, a store.Act) error
}

// MarkerReader is implemented by a store that can show the marker of an identity. The result is
// informative only, because the marker may change at any time.
type MarkerReader interface {
	// Marker returns the marker of the key in its newest generation, and reports whether there is one.
	Marker(ctx context.Context, key semel.Key) (store.StoredMarker, bool, error)
}
