package contract

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
)

// String is the state's name, as it is stored.
func (s RowState) String() string { return string(s) }

// RowState is the state of an inbox row. Names are stored and never change. A
// state that this release does not write is a newer one's: the row is shown with
// it, and nothing may be done to it here.
type RowState string

// The states of an inbox row.
const (
	StateCompleted    RowState = "COMPLETED"
	StateParked       RowState = "PARKED"
	StateDeadLettered RowState = "DEAD_LETTERED"
	StateDiscarded    RowState = "DISCARDED"
)

// transitions lists every legal change of a row's state.
var transitions = map[RowState][]RowState{
	StateParked:       {StateCompleted, StateDeadLettered, StateDiscarded},
	StateDeadLettered: {StateCompleted, StateDiscarded},
	StateCompleted:    {},
	StateDiscarded:    {},
}

// Known reports whether this release writes rows of this state, and so knows what
// it means.
func (s RowState) Known() bool {
	_, known := transitions[s]
	return known
}

// CanBecome reports whether a row may go from state s to state t; false if this
// release does not know s.
func (s RowState) CanBecome(t RowState) bool {
	for _, legal := range transitions[s] {
		if legal == t {
			return true
		}
	}
	return false
}

// MayBecome is nil if a row may go from state s to state t; otherwise an error
// that wraps semel.ErrState and says why not.
func (s RowState) MayBecome(t RowState) error {
	switch {
	case s.CanBecome(t):
		return nil
	case !s.Known():
		return fmt.Errorf("is %s, which a newer release wrote; only that release, or a newer one, may act on it: %w", s, semel.ErrState)
	}
	return fmt.Errorf("is %s: %w", s, semel.ErrState)
}

// Outcome is what the marker of a message says whose row is in state s; 0 if this
// release does not know s.
func (s RowState) Outcome() semel.Outcome {
	switch s {
	case StateCompleted:
		return semel.Applied
	case StateParked:
		return semel.Parked
	case StateDeadLettered:
		return semel.DeadLettered
	case StateDiscarded:
		return semel.Discarded
	}
	return 0
}

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
	// Times are by the store's clock.
	ReceivedAt, ChangedAt time.Time
	// Message is the message; its Body is nil unless the filter asked for it.
	Message *semel.Message
	// Size is the length of the body in bytes.
	Size int
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
	// Verb is "retry", "discard", ...
	Verb string
	// Who is never empty; Why may be refused when empty.
	Who, Why string
	// Result is set by the store: "done", or how it failed.
	Result string
	Row    int64
	// At is set by the store, by its clock.
	At time.Time
}

// Inbox is an optional ability of a store: to show rows and to let operators
// act on them. Acts are recorded in the same transaction as what they change,
// append-only.
type Inbox interface {
	// Rows returns rows by number, ascending. A row that cannot be read
	// whole is returned with what could be read, its LastError saying so.
	Rows(ctx context.Context, f RowFilter) ([]StoredRow, error)
	// Discard closes a row if it still has this revision, its marker with
	// it; semel.ErrChanged otherwise, and nothing is changed.
	Discard(ctx context.Context, number, revision int64, a Act) error
	// FailRetry records a retry that failed: one more attempt, the error, the act.
	FailRetry(ctx context.Context, number, revision int64, errorText string, a Act) error
	// Acts returns the acts on a row, or with 0 on all, oldest first.
	Acts(ctx context.Context, number int64, limit int) ([]Act, error)
}

// RowRetrier is an optional ability of a TxStore: to run a row's message
// again in one transaction with the row's completion.
type RowRetrier[Tx any] interface {
	// BeginRow opens a transaction that completes the row, sets its marker to
	// applied and records the act, if the row still has this revision and a
	// state that may become COMPLETED; semel.ErrChanged otherwise. A conflict row
	// whose identity is applied is refused with semel.ErrConflict. The handler's
	// effect goes into the batch's Tx(0); Commit takes an empty Ending.
	BeginRow(ctx context.Context, o TxOptions, number, revision int64, a Act) (Batch[Tx], error)
}

// StoredMarker is what a store knows of an identity. Where the message came
// from it does not know: a marker is small, because it is kept.
type StoredMarker struct {
	Outcome semel.Outcome
	// At is when it became so, by the store's clock.
	At time.Time
}

// MarkerReader is an optional ability of a store: to tell people what became of
// an identity. It decides nothing, because a marker may change while it is read.
type MarkerReader interface {
	// Marker returns the marker of the key, of its newest generation; false if
	// there is none.
	Marker(ctx context.Context, key semel.Key) (StoredMarker, bool, error)
}
