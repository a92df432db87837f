package contract

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
)

// StoredRow is a stored inbox row.
type StoredRow struct {
	// Number is the number of the row in its store. It never changes.
	Number int64
	// Revision changes with every write. Acts name the revision that they saw.
	Revision    int64
	Key         semel.Key
	Fingerprint semel.Fingerprint
	Conflict    bool
	// Surrogate means that the message has no usable identity and Key.ID was generated for this row.
	Surrogate bool
	State     RowState
	Reason    semel.Reason
	// Attempts is the number of finished runs of the handler, Repeated the number of further
	// deliveries.
	Attempts, Repeated    int
	FirstError, LastError string
	// Started is the number of recorded starts without a known end; see Leases.Start.
	Started int
	// Times are by the store's clock.
	ReceivedAt, ChangedAt time.Time
	// DueAt is the time from which a waiting row may be claimed. LockedUntil is the end of the lease of
	// a row in progress. Otherwise they are zero.
	DueAt, LockedUntil time.Time
	// Stream and Version are the message's position in its stream; empty and 0 if it has none.
	Stream  string
	Version int64
	// Line and Place are the row's line and its position in the line; empty and 0 if it has none. Place
	// is also 0 if the row was removed from its line.
	Line  string
	Place int64
	// CallsStarted is the number of external calls that were started for the message, CallsFinished the
	// number of calls with a known outcome, and CalledAt the start of the first call by the store's
	// clock, the epoch where that is unknown because the clock was ahead then. They are zero for a row
	// without calls. See Calls.
	CallsStarted, CallsFinished int
	CalledAt                    time.Time
	// Steps are the completed steps of the message, in order.
	Steps []StepDone
	// Unreadable, if not empty, says why the row must not be processed: its message cannot be decrypted,
	// so that only topic and type are known, or it is in plain text although the store requires
	// encryption.
	Unreadable string
	// Message is the message. Its Body is nil unless RowFilter.Bodies is set.
	Message *semel.Message
	// Size is the length of the body in bytes. BodyRemoved reports that the body was removed after
	// Retention.Bodies.
	Size        int
	BodyRemoved bool
}

// RowFilter selects rows. Zero fields select all.
type RowFilter struct {
	Consumer string
	// Numbers selects these rows.
	Numbers []int64
	// IDs selects rows of these identities.
	IDs    []string
	States []RowState
	Reason semel.Reason
	Type   string
	// Stream, if not nil, selects rows of one stream.
	Stream *StreamRows
	// DueLater excludes rows in StateReceived that are due now, by the store's clock. Rows in other
	// states are not affected.
	DueLater bool
	// ReceivedBefore selects rows received earlier.
	ReceivedBefore time.Time
	// After selects rows with a greater number, for paging.
	After int64
	// Limit is the maximum number of rows; 0 means 1,000.
	Limit int
	// Bodies includes the messages' bodies.
	Bodies bool
}

// RowRevision names a row and the revision that the caller saw.
type RowRevision struct{ Number, Revision int64 }

// Seen returns the number and the revision of the row, for an act on it.
func (r StoredRow) Seen() RowRevision { return RowRevision{r.Number, r.Revision} }

// Act is an audited action of an operator.
type Act struct {
	// Number is set by an Auditor. Later acts usually have greater numbers; numbers can have gaps.
	Number int64
	// Verb is "retry", "discard", ...
	Verb string
	// Who is never empty. A store may reject an empty Why.
	Who, Why string
	// Result is set by the store: "done" or the failure, and for an act of a Resolver its
	// Resolution.
	Result string
	Row    int64
	// At is set by the store's clock.
	At time.Time
}

// Pending counts the rows of a consumer that wait in the inbox, by the store's clock.
type Pending struct {
	// Due rows may be claimed now, Later rows are due later, InProgress rows have a valid claim, and
	// Blocked rows wait for an earlier version of their stream or an earlier row of their line.
	Due, Later, InProgress, Blocked int64
	// Next is the time until the first of Later is due, and Oldest the time since the first of all
	// these rows was received; zero if there is none.
	Next, Oldest time.Duration
}

// Inbox is implemented by a store whose rows operators can list and change. Acts are recorded in the
// transaction of the change. Recorded acts are never changed.
type Inbox interface {
	// Rows returns rows in ascending order of their numbers, and rows of one stream by version and then
	// by number. A row that can only be read in part is returned with a LastError that says so.
	Rows(ctx context.Context, f RowFilter) ([]StoredRow, error)
	// Pending counts the waiting rows of a consumer.
	Pending(ctx context.Context, consumer string) (Pending, error)
	// Discard sets rows to StateDiscarded, and their markers to Discarded. It returns one error for each
	// row, in their order; see Requeuer. semel.ErrChanged: the row has another revision. semel.ErrState:
	// its state does not allow the act.
	Discard(ctx context.Context, a Act, rows ...RowRevision) []error
	// Acts returns the acts on a row, or on all rows with 0, oldest first.
	Acts(ctx context.Context, number int64, limit int) ([]Act, error)
}

// Recorder is an optional ability of an Inbox: to record what a person does to no one row.
type Recorder interface {
	// Record writes an act that changes nothing by itself; Act.Row is 0 if it is of no
	// row.
	Record(ctx context.Context, a Act) error
}

// ErrDueAlready is returned if a row that should be made due is due already. Nothing was changed or
// recorded. It wraps semel.ErrState.
var ErrDueAlready = fmt.Errorf("it is due already: %w", semel.ErrState)

// ErrOpen is returned if another row of the identity waits, is in progress, or may have been applied in
// part. Nothing was changed or recorded. It wraps semel.ErrConflict.
var ErrOpen = fmt.Errorf("another content of this identity is not closed: %w", semel.ErrConflict)

// Requeuer is implemented by an Inbox with Leases whose rows operators can make due again. Acts are
// recorded as those of an Inbox, and Act.Row is ignored.
//
// An act on several rows judges each row on its own and returns one error for each row, in their order; nil
// means that the row is changed and the act recorded. A row with an error is unchanged, unless the error is
// of a commit whose outcome is unknown. A store may change many rows in one transaction: after a crash each
// row is either changed, with its act, or not. semel.ErrChanged: the row has another revision.
// semel.ErrState: its state does not allow the act.
type Requeuer interface {
	// Requeue makes parked, dead-lettered or waiting rows due now and sets their markers to Waiting, if
	// MayRequeue and MayRun allow it. ErrDueAlready: the row is due. semel.ErrConflict: the identity
	// is applied, or another row of it waits.
	Requeue(ctx context.Context, a Act, rows ...RowRevision) []error
	// Release ends the claims of rows in progress and makes the rows due. The previous claimant can no
	// longer end its claim.
	Release(ctx context.Context, a Act, rows ...RowRevision) []error
	// Reopen sets a discarded row to StateParked, with its marker if that belongs to the row, so that
	// it can be retried. The row keeps its reason, or gets ReopenedReason if that is not a reason of
	// parked rows. The row is not put back into its line. semel.ErrState: MayReopen rejects the row.
	// semel.ErrConflict: MayRun rejects the row, or the identity has no marker, so that its outcome is
	// unknown.
	Reopen(ctx context.Context, number, revision int64, a Act) error
}

// StoredMarker is the stored marker of an identity. Markers are small because they are kept for long, so
// they do not contain where the message came from.
type StoredMarker struct {
	Outcome Outcome
	// At is the time of the last change, by the store's clock.
	At time.Time
	// Fingerprint is the fingerprint of the marked content; zero if none is stored.
	Fingerprint semel.Fingerprint
}

// MayRequeue returns nil if the state of a row allows an event that makes it due now, RowRetried or
// RowReleased, and otherwise an error that wraps semel.ErrState and says why not. due reports that a waiting
// row is due already, by the store's clock: then the error is ErrDueAlready. A row that was parked because
// the outcome of a call is unknown is not retried. MayRun judges the other rows of its identity.
func MayRequeue(r *StoredRow, e RowEvent, due bool) error {
	_, legal := r.State.After(e)
	switch {
	case !legal:
		return fmt.Errorf("row %d is %s: %w", r.Number, r.State, semel.ErrState)
	case due && r.State.Outcome() == Waiting && r.State != StateInProgress:
		return fmt.Errorf("row %d: %w", r.Number, ErrDueAlready)
	case e == RowRetried && r.UnknownOutcome() && r.Reason == semel.ReasonOutcomeUnknown:
		return fmt.Errorf("row %d: nobody knows whether a call for it took effect, and the other side may have forgotten its key; find out, and say so with semel inbox resolve: %w", r.Number, semel.ErrState)
	}
	return nil
}

// MarkerReader is implemented by a store that can show the marker of an identity. The result is
// informative only, because the marker may change at any time.
type MarkerReader interface {
	// Marker returns the marker of the key in its newest generation, and reports whether there is one.
	Marker(ctx context.Context, key semel.Key) (StoredMarker, bool, error)
}
