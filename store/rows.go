package store

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/versions"
)

// StoredRow is a stored inbox row.
type StoredRow struct {
	// Number is the number of the row in its store. Number never changes.
	Number int64
	// Revision changes with every write. An operator's change names the revision that the operator saw.
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
	// without calls. See Leases.StartCalls.
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
	Stream *versions.Rows
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

// Seen returns the number and the revision of the row, for a change of the row.
func (r StoredRow) Seen() RowRevision { return RowRevision{r.Number, r.Revision} }

// Act is an audited action of an operator.
type Act struct {
	// Number is set by an Auditor. Later records usually have greater numbers; numbers can have gaps.
	Number int64
	// Verb is "retry", "discard", ...
	Verb string
	// Who is never empty. A store may reject an empty Why.
	Who, Why string
	// Result is set by the store: "done" or the failure, and for a change by a Resolver its
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

// Inbox is implemented by a store whose rows operators can list and change. The transaction of each change
// also writes an audit record (Act). Audit records are never changed.
type Inbox interface {
	// Rows returns rows in ascending order of their numbers, and rows of one stream by version and then
	// by number. A row that can only be read in part is returned with a LastError that says so.
	Rows(ctx context.Context, f RowFilter) ([]StoredRow, error)
	// Pending counts the waiting rows of a consumer.
	Pending(ctx context.Context, consumer string) (Pending, error)
	// Discard sets rows to StateDiscarded, and their markers to Discarded. Discard returns one error for
	// each row, in their order; see Requeuer. semel.ErrChanged: the row has another revision.
	// semel.ErrState: its state does not allow the change.
	Discard(ctx context.Context, a Act, rows ...RowRevision) []error
	// Acts returns the acts on a row, or on all rows with 0, oldest first.
	Acts(ctx context.Context, number int64, limit int) ([]Act, error)
}
