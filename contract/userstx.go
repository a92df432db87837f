package contract

import (
	"context"

	"github.com/semel-go/semel"
)

// TxMarker is an optional ability of a TxStore: to mark inside a transaction
// that the user opened.
type TxMarker[Tx any] interface {
	// MarkIn writes the marks in tx. An error leaves tx as the database
	// leaves it; the caller rolls back.
	MarkIn(ctx context.Context, tx Tx, marks []Mark) ([]Verdict, error)
}

// TxReceiver is an optional ability of a TxMarker that keeps an inbox: to receive
// inside a transaction that the user opened.
type TxReceiver[Tx any] interface {
	// ReceiveIn is MarkIn for marks that say Waiting, and writes for each that is
	// fresh the row of its message, received and due now. A copy of what was there
	// is left alone.
	ReceiveIn(ctx context.Context, tx Tx, marks []Mark, messages []*semel.Message) ([]Verdict, error)
}

// TxScoper is an optional ability of a TxMarker whose batches take turns: to intern
// inside a transaction that the user opened, for which Scope would wait if it has
// written.
type TxScoper[Tx any] interface {
	TurnTaker
	// ScopeIn is Scope in tx. The number is not known before tx has committed.
	ScopeIn(ctx context.Context, tx Tx, consumer, source string, generation int64) (int64, error)
}

// Interner is an optional ability of a store: to intern the scopes of many sources at once. A
// producer chooses its sources, so a batch may have as many new ones as messages; without an
// Interner the engine calls TxStore.Scope for each of them.
type Interner interface {
	// Scopes is TxStore.Scope for several sources of one consumer. The numbers are in the order
	// of the sources. How many statements it needs does not depend on how many there are, where
	// each statement is a round trip.
	Scopes(ctx context.Context, consumer string, sources []string, generation int64) ([]int64, error)
}
