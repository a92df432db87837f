package store

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/versions"
)

// StoredRow is a stored inbox row.
type StoredRow struct {
	// Number is the number of the row in its store, which never changes.
	Number int64
	// Revision changes with every write. An operator's change contains the revision that the operator read.
	Revision    int64
	Key         semel.Key
	Fingerprint semel.Fingerprint
	Conflict    bool
	// Surrogate is true if the message has no usable identity and Key.ID was generated for the row.
	Surrogate bool
	State     RowState
	Reason    semel.Reason
	// Attempts is the number of finished runs of the handler. Repeated is the number of further deliveries.
	Attempts, Repeated    int
	FirstError, LastError string
	// Started is the number of recorded starts whose end is not recorded; see Leases.Start.
	Started int
	// ReceivedAt and ChangedAt are by the store's clock.
	ReceivedAt, ChangedAt time.Time
	// DueAt is the time from which a waiting row may be claimed; zero for other rows. LockedUntil is the end
	// of the lease of a row in progress; zero for other rows.
	DueAt, LockedUntil time.Time
	// Stream and Version are the message's position in its stream. If the message has no version, Stream is "" and
	// Version is 0.
	Stream  string
	Version int64
	// Line is the name of the row's line (a queue of messages that are processed in order), and Place is the row's
	// position in the line. If the row is in no line, Line is "" and Place is 0. Place is also 0 if the row was removed
	// from its line.
	Line  string
	Place int64
	// CallsStarted is the number of external calls that were started for the message. CallsFinished is the number of
	// calls with a known outcome. CalledAt is the start of the first call by the store's clock, or the epoch if that
	// time is unknown because the clock was ahead. For a row without calls, the fields about calls are zero. See
	// Leases.StartCalls.
	CallsStarted, CallsFinished int
	CalledAt                    time.Time
	// Steps are the completed steps of the message, in order.
	Steps []StepDone
	// Unreadable, if not empty, is the reason why the row must not be processed. Either the message cannot be
	// decrypted, so that only topic and type are known, or the message is in plain text although the store
	// requires encryption.
	Unreadable string
	// Message is the message of the row. If RowFilter.Bodies is not set, Message.Body is nil.
	Message *semel.Message
	// Size is the length of the body in bytes. BodyRemoved is true if the body was removed after
	// Retention.Bodies.
	Size        int
	BodyRemoved bool
}

// RowFilter selects rows. A field with the zero value selects all rows.
type RowFilter struct {
	Consumer string
	// Numbers selects the rows with the given numbers.
	Numbers []int64
	// IDs selects the rows with the given ids.
	IDs    []string
	States []RowState
	Reason semel.Reason
	Type   string
	// Stream, if not nil, selects rows of one stream.
	Stream *versions.Rows
	// DueLater excludes rows in StateReceived that can be claimed now, by the store's clock. Rows in other
	// states are not affected.
	DueLater bool
	// ReceivedBefore selects rows that were received before the given time.
	ReceivedBefore time.Time
	// After selects rows with a greater number, for paging.
	After int64
	// Limit is the maximum number of rows; 0 means 1,000.
	Limit int
	// Bodies is true if the result must include the messages' bodies.
	Bodies bool
}

// RowRevision is the number of a row and the revision that the caller read.
type RowRevision struct{ Number, Revision int64 }

// Seen returns the number and the revision of the row, which every change of the row needs.
func (r StoredRow) Seen() RowRevision { return RowRevision{r.Number, r.Revision} }

// Act is the audit record of an operator's change.
type Act struct {
	// Number is set by an Auditor. Later audit records usually have greater numbers; there may be gaps.
	Number int64
	// Verb is the name of the change, such as "retry" or "discard".
	Verb string
	// Who is the operator, and Why is the reason. Who is never empty. A store may reject an empty Why.
	Who, Why string
	// Result is set by the store: "done" or the failure. For a change by a Resolver, Result is the Resolution.
	Result string
	Row    int64
	// At is the time of the change, by the store's clock.
	At time.Time
}

// Pending contains the numbers of rows of a consumer that wait in the inbox. Whether a row can be claimed now depends
// on the store's clock.
type Pending struct {
	// Due is the number of rows that can be claimed now. Later is the number of rows that can be claimed at a later
	// time. InProgress is the number of rows with a valid claim. Blocked is the number of rows that wait for an earlier
	// version of their stream or an earlier row of their key or lane.
	Due, Later, InProgress, Blocked int64
	// Next is the time until the first of the Later rows can be claimed, or zero if there is no such row. Oldest is the
	// time since the first of all waiting rows was received, or zero if no row waits.
	Next, Oldest time.Duration
}

// Inbox is implemented by a store whose rows operators can list and change. The transaction of each change
// also writes an audit record (Act). Audit records are never changed.
type Inbox interface {
	// Rows returns rows ordered by number. Rows of one stream are ordered by version and then by number. If a row can
	// only be read in part, its LastError says that.
	Rows(ctx context.Context, f RowFilter) ([]StoredRow, error)
	// Pending counts the waiting rows of a consumer.
	Pending(ctx context.Context, consumer string) (Pending, error)
	// Discard sets rows to StateDiscarded, and their markers to Discarded. Discard returns one error or nil
	// for each row, in their order; see Requeuer. The error is semel.ErrChanged if the row has another
	// revision, and semel.ErrState if its state does not allow the change.
	Discard(ctx context.Context, a Act, rows ...RowRevision) []error
	// Acts returns the audit records of a row, oldest first. If number is 0, Acts returns the audit records of all
	// rows.
	Acts(ctx context.Context, number int64, limit int) ([]Act, error)
}
