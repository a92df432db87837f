package contract

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
)

// StoredRow is an inbox row as it stands in the store.
type StoredRow struct {
	// Number is the store's number of the row; it never changes.
	Number int64
	// Revision changes with every write; acts name the one they saw.
	Revision    int64
	Key         semel.Key
	Fingerprint semel.Fingerprint
	Conflict    bool
	// Surrogate says that the message had no usable identity and that Key.ID
	// was made for this row only.
	Surrogate bool
	State     RowState
	Reason    semel.Reason
	// Attempts are the finished runs of the handler; Repeated the further
	// deliveries counted on the row.
	Attempts, Repeated    int
	FirstError, LastError string
	// Started are the runs that were begun and written down as such before they
	// began, and of which no end is known; see Leases.Start.
	Started int
	// Times are by the store's clock.
	ReceivedAt, ChangedAt time.Time
	// DueAt is when a row that waits may be claimed, LockedUntil when the lease of
	// one in progress ends; zero otherwise.
	DueAt, LockedUntil time.Time
	// Stream and Version are the message's place in its stream; empty and 0 if it has
	// none.
	Stream  string
	Version int64
	// Line is what the message keeps an order with, Place where it stands in it; empty
	// and 0 if it has none. Place is 0, too, of one that was taken out of its line.
	Line  string
	Place int64
	// CallsStarted are the calls that were begun for the message, CallsFinished those of
	// which it is known what became, CalledAt is when the first was begun, by the store's
	// clock; zero of a row that had none. See Calls.
	CallsStarted, CallsFinished int
	CalledAt                    time.Time
	// Steps are the steps of the message that have taken effect, in their order.
	Steps []StepDone
	// Unreadable, if not empty, says why nobody may work on the row: its message is encrypted
	// and cannot be decrypted, so that only topic and type are known, or it is in plain text
	// where the store requires encryption.
	Unreadable string
	// Message is the message; its Body is nil unless the filter asked for it.
	Message *semel.Message
	// Size is the length of the body in bytes; BodyRemoved says that it was removed, since
	// it was kept for as long as Retention.Bodies.
	Size        int
	BodyRemoved bool
}

// RowFilter chooses rows. Zero fields choose all.
type RowFilter struct {
	Consumer string
	// Numbers chooses these rows.
	Numbers []int64
	// ID chooses rows of this identity.
	ID     string
	States []RowState
	Reason semel.Reason
	Type   string
	// Stream, when not nil, chooses rows of one stream.
	Stream *StreamRows
	// DueLater chooses, of the rows in StateReceived, only those that are due later than now, by
	// the store's clock. Rows in other states are chosen as without it.
	DueLater bool
	// ReceivedBefore chooses rows received earlier.
	ReceivedBefore time.Time
	// After chooses rows with a greater number, for paging.
	After int64
	// Limit is the most rows returned; 0 means 1,000.
	Limit int
	// Bodies asks for the messages' bodies.
	Bodies bool
}

// Act is what an operator does to a row: who, when, why, and to what.
type Act struct {
	// Number is the store's, told by an Auditor; later acts mostly have greater numbers, and
	// numbers have gaps.
	Number int64
	// Verb is "retry", "discard", ...
	Verb string
	// Who is never empty; Why may be refused when empty.
	Who, Why string
	// Result is set by the store: "done", or how it failed; of an act of a Resolver, what
	// was found out (Resolution).
	Result string
	Row    int64
	// At is set by the store, by its clock.
	At time.Time
}

// Pending is what of a consumer waits in the inbox, by the store's clock.
type Pending struct {
	// Due are rows that may be claimed now, Later those that wait for their time,
	// InProgress those whose claims stand, Blocked those that wait for an earlier version
	// of their streams, or an earlier row of their lines.
	Due, Later, InProgress, Blocked int64
	// Next is in how long the first of Later is due, Oldest how long ago the first
	// of all was received; zero if there is none.
	Next, Oldest time.Duration
}

// Inbox is an optional ability of a store: to show rows and to let operators
// act on them. Acts are recorded in the same transaction as what they change,
// append-only.
type Inbox interface {
	// Rows returns rows by number, ascending, those of one stream by version and then by
	// number. A row that cannot be read
	// whole is returned with what could be read, its LastError saying so.
	Rows(ctx context.Context, f RowFilter) ([]StoredRow, error)
	// Pending says what of a consumer waits in the inbox.
	Pending(ctx context.Context, consumer string) (Pending, error)
	// Discard closes a row if it still has this revision, its marker with
	// it; semel.ErrChanged otherwise, and nothing is changed.
	Discard(ctx context.Context, number, revision int64, a Act) error
	// Acts returns the acts on a row, or with 0 on all, oldest first.
	Acts(ctx context.Context, number int64, limit int) ([]Act, error)
}

// Recorder is an optional ability of an Inbox: to record what a person does to no one row.
type Recorder interface {
	// Record writes an act that changes nothing by itself; Act.Row is 0 if it is of no
	// row.
	Record(ctx context.Context, a Act) error
}

// ErrDueAlready: a row that is to be made due is due; nothing was changed or recorded.
// It is an semel.ErrState.
var ErrDueAlready = fmt.Errorf("it is due already: %w", semel.ErrState)

// ErrOpen: another row of the identity waits, is worked on, or may have taken effect in part;
// nothing was changed or recorded. It is an semel.ErrConflict.
var ErrOpen = fmt.Errorf("another content of this identity is not closed: %w", semel.ErrConflict)

// Requeuer is an optional ability of an Inbox whose rows are claimed: to let a row be
// worked on again by whoever claims it. Acts are recorded as those of an Inbox.
// semel.ErrChanged: the row has another revision; semel.ErrState: its state does not
// allow it; then nothing is changed.
type Requeuer interface {
	// Requeue makes a row due now that was set aside, or waits for later, and its
	// marker waiting. ErrDueAlready: it is due. semel.ErrConflict: the
	// identity is applied, or another of its rows waits.
	Requeue(ctx context.Context, number, revision int64, a Act) error
	// Release ends the claim of a row in progress, which is due at once: whoever had
	// it can end it no more.
	Release(ctx context.Context, number, revision int64, a Act) error
	// Reopen parks a row again that was discarded, with its marker if that belongs to it, so
	// that it can be retried. It keeps its reason, or gets contract.ReasonReopened where it has
	// none of a row that is parked, and has left its line. semel.ErrState: MayReopen refuses
	// it; semel.ErrConflict: MayRun does, or it has no marker, so that nobody can tell what
	// became of its identity.
	Reopen(ctx context.Context, number, revision int64, a Act) error
}

// StoredMarker is what a store knows of an identity. Where the message came
// from it does not know: a marker is small, because it is kept.
type StoredMarker struct {
	Outcome Outcome
	// At is when it became so, by the store's clock.
	At time.Time
	// Fingerprint is that of the content which it is of; zero where none is kept.
	Fingerprint semel.Fingerprint
}

// MarkerReader is an optional ability of a store: to tell people what became of
// an identity. It decides nothing, because a marker may change while it is read.
type MarkerReader interface {
	// Marker returns the marker of the key, of its newest generation; false if
	// there is none.
	Marker(ctx context.Context, key semel.Key) (StoredMarker, bool, error)
}
