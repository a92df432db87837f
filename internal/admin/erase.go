package admin

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// ErasureFilter selects identities by their stored data. A field with the zero value selects all identities.
type ErasureFilter struct {
	// Consumers, Sources and IDs are lists of alternatives.
	Consumers, Sources, IDs []string
	// States, Reason, Type and Header select rows. If one of these fields is set, identities without a row are not
	// selected.
	States []store.RowState
	Reason semel.Reason
	Type   string
	// Header, if its name is not empty, selects messages with a header of the same name and value.
	Header semel.Header
	// From (inclusive) and Before (exclusive) limit the time when a row was received or, without a row,
	// when the marker or key was written.
	From, Before time.Time
}

// OfRows reports whether the filter uses fields that only rows have.
func (f *ErasureFilter) OfRows() bool {
	return len(f.States) > 0 || f.Reason != reasonname.None || f.Type != "" || f.Header.Name != ""
}

// OfKey reports whether the filter selects an identity by its consumer, source and id.
func (f *ErasureFilter) OfKey(k semel.Key) bool {
	in := func(of []string, one string) bool { return len(of) == 0 || slices.Contains(of, one) }
	return in(f.Consumers, k.Consumer) && in(f.Sources, k.Source) && in(f.IDs, k.ID)
}

// OfTime reports whether the filter selects the given time.
func (f *ErasureFilter) OfTime(at time.Time) bool {
	return (f.From.IsZero() || !at.Before(f.From)) && (f.Before.IsZero() || at.Before(f.Before))
}

// OfHeaders reports whether the filter selects a message with the given headers.
func (f *ErasureFilter) OfHeaders(all semel.Headers) bool {
	return f.Header.Name == "" || slices.ContainsFunc(all, func(h semel.Header) bool {
		return h.Name == f.Header.Name && string(h.Value) == string(f.Header.Value)
	})
}

// OfRow reports whether the filter selects a row, and thereby its identity.
func (f *ErasureFilter) OfRow(r *store.StoredRow) bool {
	return f.OfKey(r.Key) && f.OfTime(r.ReceivedAt) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(f.Reason == reasonname.None || f.Reason == r.Reason) &&
		(f.Type == "" || f.Type == r.Message.Type()) && f.OfHeaders(r.Message.Headers)
}

// ErasurePart is a part of an erasure. Erase processes the parts in the order of the constants.
type ErasurePart uint8

const (
	// ErasureRows are identities with rows.
	ErasureRows ErasurePart = iota
	// ErasureResults are identities with a result and without a selected row.
	ErasureResults
	// ErasureKeys are leased keys with a result.
	ErasureKeys
	// ErasureDone means that the erasure is complete.
	ErasureDone
)

// String returns the name of the part.
func (p ErasurePart) String() string {
	return enum.Name([]string{ErasureRows: "rows", ErasureResults: "results", ErasureKeys: "keys", ErasureDone: "done"}, p, "ErasurePart")
}

// ErasureMark is a position in an erasure. The zero ErasureMark is the start of the erasure.
type ErasureMark struct {
	Part   ErasurePart
	Number int64  // number of the last row, or number of the source of the last result
	ID     []byte // id of the last result, or the last key
}

// Erasing is the argument of Eraser.Erase.
type Erasing struct {
	Filter ErasureFilter
	// After is Erased.Next of the previous call.
	After ErasureMark
	// Most is the maximum number of rows, results or keys that the call examines; 0 means 50. Processes that handle
	// copies of the examined messages wait for the transaction.
	Most int
	// DryRun means that Erase only counts. If an identity is selected itself and is also an output of a
	// selected identity, different calls may count the identity twice.
	DryRun bool
	// Act contains who erases, and why. Erase writes this information into the audit record of each identity.
	Act store.Act
}

// Erased is the result of Eraser.Erase.
type Erased struct {
	Next ErasureMark
	// Identities is the number of erased identities. Rows, Results and Keys are the numbers of erased rows, results and
	// leased keys.
	Identities, Rows, Results, Keys int64
	// Left contains the selected identities of which nothing was erased.
	Left []ErasureLeft
}

// ErasureLeft is an identity of which nothing was erased.
type ErasureLeft struct {
	Key semel.Key
	// Row is the number of the row that prevents the erasure, or 0 if it is unknown. State is the state of the row that
	// prevents the erasure. The row may belong to an output of the message.
	Row   int64
	State store.RowState
	Why   ErasureWhy
}

// ErasureWhy is the reason why nothing of an identity was erased.
type ErasureWhy string

const (
	// ErasureUnfinished means that a row has not ended. Discard the row first.
	ErasureUnfinished ErasureWhy = "unfinished"
	// ErasureBusy means that another transaction is writing a row. Erase again later.
	ErasureBusy ErasureWhy = "busy"
	// ErasureNewer means that the row has a state that only a newer release knows.
	ErasureNewer ErasureWhy = "of a newer release"
	// ErasureUnreadable means that the store has only a hash of the id, so that the outputs of the message cannot be
	// found, or that the filter uses headers, and the headers cannot be read.
	ErasureUnreadable ErasureWhy = "unreadable"
)

// Eraser is implemented by an Inbox that can erase the contents of messages. Eraser does not remove identity, marker
// and fingerprint, so that copies of an erased message are still recognised as duplicates.
type Eraser interface {
	// Erase erases some of the selected identities in its own transaction, and returns in Erased.Next where to
	// continue. Each identity is erased completely or not at all. Erase erases:
	//
	//   - body, key, headers, attributes except the type, errors and steps of all rows of the identity,
	//     including conflicts
	//   - the result of the identity, and the result of its leased key
	//   - the same data in the other generations of the consumer
	//   - the same data of the outputs of the message, such as intents
	//
	// Erased rows have the reason "erased" and StoredRow.BodyRemoved. If another transaction is writing one
	// of the rows, Erase does not wait, and the identity is not erased (ErasureBusy).
	//
	// Erase writes an audit record for each identity, with the number of the identity's first row. If the
	// identity has no row, the number is 0 and the record's Result is a hash of the identity.
	Erase(ctx context.Context, o Erasing) (Erased, error)
	// Scrub removes old versions of changed rows from the database files, as far as the database supports that. If
	// whole is set, Scrub rewrites tables, which takes long and may block writers. If whole is not set, Scrub does only
	// cheap work.
	Scrub(ctx context.Context, whole bool) error
}
