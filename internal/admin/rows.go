package admin

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Recorder is implemented by an Inbox that can write an audit record without changing a row.
type Recorder interface {
	// Record writes an audit record and changes nothing else. Act.Row is 0 if the record does not
	// concern a row.
	Record(ctx context.Context, a store.Act) error
}

// ErrDueAlready is returned if a row that should be made due is due already. Nothing was changed or
// recorded. ErrDueAlready wraps semel.ErrState.
var ErrDueAlready = fmt.Errorf("it is due already: %w", semel.ErrState)

// ErrOpen is returned if another row of the identity waits, is in progress, or may have been applied in
// part. Nothing was changed or recorded. ErrOpen wraps semel.ErrConflict.
var ErrOpen = fmt.Errorf("another content of this identity is not closed: %w", semel.ErrConflict)

// Requeuer is implemented by an Inbox with Leases in which operators can retry, release, reopen and suppress
// rows. Each change is recorded with an audit record (store.Act), as by an Inbox; Act.Row is ignored.
//
// Each method judges every row on its own and returns one error for each row, in the order of the rows; nil
// means that the row is changed and its audit record is written. A row with an error is unchanged, unless the
// error is of a commit whose outcome is unknown. A store may change many rows in one transaction: after a crash
// each row is either changed, with its audit record, or not. semel.ErrChanged: the row has another revision.
// semel.ErrState: the state of the row does not allow the change.
type Requeuer interface {
	// Requeue makes parked, dead-lettered or waiting rows due now and sets their markers to Waiting, if
	// MayAct and MayRun allow it. ErrDueAlready: the row is due. semel.ErrConflict: the identity
	// is applied, or another row of it waits.
	Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// Release ends the claims of rows in progress and makes the rows due. The previous claimant can no
	// longer end its claim.
	Release(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// Reopen sets discarded rows to StateParked, with their markers if these belong to the rows, so that
	// they can be retried. A row keeps its reason, or gets ReopenedReason if that is not a reason of
	// parked rows. It is not put back into its line. semel.ErrConflict: MayRun rejects the row, or the
	// identity has no marker, so that its outcome is unknown.
	Reopen(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// Suppress parks waiting rows that are not in progress, and their markers, with
	// reason "suppressed". Requeue makes them due again.
	Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
}

// MarkerReader is implemented by a store that can show the marker of an identity. The result is
// informative only, because the marker may change at any time.
type MarkerReader interface {
	// Marker returns the marker of the key in its newest generation, and reports whether there is one.
	Marker(ctx context.Context, key semel.Key) (StoredMarker, bool, error)
}
