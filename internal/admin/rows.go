package admin

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Recorder is implemented by an Inbox that can write an audit record without changing a row.
type Recorder interface {
	// Record writes an audit record and changes no other data. Act.Row is 0 if the record does not concern a
	// row.
	Record(ctx context.Context, a store.Act) error
}

// ErrDueAlready is returned if a row should be made due and is due already. The row was not changed, and no audit
// record was written. ErrDueAlready wraps semel.ErrState.
var ErrDueAlready = fmt.Errorf("it is due already: %w", semel.ErrState)

// ErrOpen is returned if another row of the identity waits, is in progress, or may have been applied in part. With
// ErrOpen, the row was not changed, and no audit record was written. ErrOpen wraps semel.ErrConflict.
var ErrOpen = fmt.Errorf("another content of this identity is not closed: %w", semel.ErrConflict)

// Requeuer is implemented by an Inbox with Leases in which operators can retry, release, reopen and suppress rows. Each
// change writes an audit record (store.Act). The field Act.Row is ignored.
//
// Each method checks every row separately and returns one error for each row, in the order of the rows. If the error of
// a row is nil, the row is changed and its audit record is written. A row with an error is unchanged, unless the
// outcome of the commit is unknown. A store may change many rows in one transaction. After a crash each row is either
// changed, with its audit record, or unchanged. semel.ErrChanged means that the row has another revision.
// semel.ErrState means that the state of the row does not allow the change.
type Requeuer interface {
	// Requeue makes parked, dead-lettered or waiting rows due now and sets their markers to Waiting, if MayAct and
	// MayRun allow the change. ErrDueAlready means that the row is due. semel.ErrConflict means that the identity is
	// applied, or that another row of the identity waits.
	Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// Release ends the claims of rows in progress and makes the rows due. The process that had claimed a row
	// can no longer end its claim.
	Release(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// Reopen sets discarded rows to StateParked, so that they can be retried. If the marker of an identity belongs to
	// the row, Reopen sets the marker too. A row keeps its reason, or gets ReopenedReason if that reason is not a
	// reason of parked rows. A reopened row does not return to its queue (admin.Lines). semel.ErrConflict means that
	// MayRun rejects the row, or that the identity has no marker, so that its outcome is unknown.
	Reopen(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// Suppress parks waiting rows that are not in progress with the reason "suppressed", and sets their markers to
	// parked. Requeue makes suppressed rows due again.
	Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
}

// MarkerReader is implemented by a store that can show the marker of an identity. The marker may change at
// any time, so the result is for information only.
type MarkerReader interface {
	// Marker returns the marker of the key in its newest generation. If the key has no marker, the second result is
	// false.
	Marker(ctx context.Context, key semel.Key) (StoredMarker, bool, error)
}
