package contract

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
)

// ErasureFilter chooses identities by what is kept of them. Zero fields choose all.
type ErasureFilter struct {
	// Consumers, Sources and IDs are alternatives each.
	Consumers, Sources, IDs []string
	// States, Reason, Type and Header are of rows: with one of these an identity of which no
	// row is kept is not chosen.
	States []RowState
	Reason semel.Reason
	Type   string
	// Header, if it has a name, is one that the message has with exactly this value.
	Header semel.Header
	// From and Before bound when a row was received, or when a marker or a key was made
	// where there is no row: at From or later, and earlier than Before.
	From, Before time.Time
}

// OfRows reports whether the filter asks what only a row knows.
func (f *ErasureFilter) OfRows() bool {
	return len(f.States) > 0 || f.Reason != semel.ReasonNone || f.Type != "" || f.Header.Name != ""
}

// OfKey reports whether the filter chooses an identity by itself.
func (f *ErasureFilter) OfKey(k semel.Key) bool {
	in := func(of []string, one string) bool { return len(of) == 0 || slices.Contains(of, one) }
	return in(f.Consumers, k.Consumer) && in(f.Sources, k.Source) && in(f.IDs, k.ID)
}

// OfTime reports whether the filter chooses what is of this time.
func (f *ErasureFilter) OfTime(at time.Time) bool {
	return (f.From.IsZero() || !at.Before(f.From)) && (f.Before.IsZero() || at.Before(f.Before))
}

// OfHeaders reports whether the filter chooses a message with these headers.
func (f *ErasureFilter) OfHeaders(all semel.Headers) bool {
	return f.Header.Name == "" || slices.ContainsFunc(all, func(h semel.Header) bool {
		return h.Name == f.Header.Name && string(h.Value) == string(f.Header.Value)
	})
}

// OfRow reports whether the filter chooses a row, and so its identity.
func (f *ErasureFilter) OfRow(r *StoredRow) bool {
	return f.OfKey(r.Key) && f.OfTime(r.ReceivedAt) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(f.Reason == semel.ReasonNone || f.Reason == r.Reason) &&
		(f.Type == "" || f.Type == r.Message.Type()) && f.OfHeaders(r.Message.Headers)
}

// Erasable reports whether the payload of a row in state s may be erased: nothing can happen
// to the row any more. What waits, was set aside or dead-lettered is to be discarded first.
func (s RowState) Erasable() bool { return s == StateCompleted || s == StateDiscarded }

// ErasurePart is a part of what is looked through, in this order.
type ErasurePart uint8

// The parts.
const (
	// ErasureRows are identities with rows.
	ErasureRows ErasurePart = iota
	// ErasureResults are those without a row that was chosen, of which a result is kept.
	ErasureResults
	// ErasureKeys are leased keys of which a result is kept.
	ErasureKeys
	// ErasureDone: nothing is left.
	ErasureDone
)

// String is the part's name.
func (p ErasurePart) String() string {
	return enum.Name([]string{ErasureRows: "rows", ErasureResults: "results", ErasureKeys: "keys", ErasureDone: "done"}, p, "ErasurePart")
}

// ErasureMark is where an erasure has come to; the zero value is its beginning.
type ErasureMark struct {
	Part   ErasurePart
	Number int64  // of the last row, or the scope of the last result
	ID     []byte // of the last result, or the last key
}

// Erasing says what one call of Erase does.
type Erasing struct {
	Filter ErasureFilter
	// After is where the call before has come to.
	After ErasureMark
	// Most is how many rows, results or keys are looked at; 0 means 50. A copy of one of
	// them waits for the transaction.
	Most int
	// DryRun only counts. What is chosen by itself and as the output of another that is
	// chosen, too, may then be counted twice, if not in one call.
	DryRun bool
	// Act has who and why, for the act that is recorded of each identity.
	Act Act
}

// Erased is what one call of Erase has done, or would do.
type Erased struct {
	Next ErasureMark
	// Identities have been erased: so many rows, results and leased keys.
	Identities, Rows, Results, Keys int64
	// Left are identities that were chosen, and of which nothing was erased.
	Left []ErasureLeft
}

// ErasureLeft is an identity of which nothing was erased.
type ErasureLeft struct {
	Key semel.Key
	// Row is the one that stands in the way, and State its state; 0 if nobody can tell.
	// It may be of another identity, which the message caused.
	Row   int64
	State RowState
	Why   ErasureWhy
}

// ErasureWhy is why nothing of an identity was erased.
type ErasureWhy string

// The reasons.
const (
	// ErasureUnfinished: a row may still be worked on; discard it first.
	ErasureUnfinished ErasureWhy = "unfinished"
	// ErasureBusy: somebody writes a row now; erase again.
	ErasureBusy ErasureWhy = "busy"
	// ErasureNewer: the row has a state that only a newer release knows.
	ErasureNewer ErasureWhy = "of a newer release"
	// ErasureUnreadable: its id is kept as a hash alone, so that what it caused is not found;
	// or its headers cannot be read, by which the filter chooses.
	ErasureUnreadable ErasureWhy = "unreadable"
)

// Eraser is an optional ability of an Inbox: to remove what is kept of the contents of
// messages. The identity and its marker stay, with their fingerprint, so that copies are
// duplicates as before.
type Eraser interface {
	// Erase erases some of what the filter chooses, in a transaction of its own, and tells
	// where it has come to; nothing is left at ErasureDone. Each identity is erased whole, or
	// not at all: of all its rows, those of conflicts too, body, key, headers, attributes but
	// the type, errors and steps; its result; the result of its leased key; the same of it in
	// each other generation of its consumer, of which the filter may name some; and the same
	// of all that it caused, such as intents. Erased rows have semel.ReasonErased and
	// StoredRow.BodyRemoved. It waits for nobody who writes a row: such are left.
	//
	// An act is recorded of each identity with the number of its first row; with 0 where it
	// has none, and a hash of the identity as its result.
	Erase(ctx context.Context, o Erasing) (Erased, error)
	// Scrub has the database let go of what changed rows have left behind in its files, as
	// far as it can. With whole it rewrites what it must for that, which takes long and may
	// keep others from writing; otherwise it does what is cheap.
	Scrub(ctx context.Context, whole bool) error
}
