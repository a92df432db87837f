package store

import (
	"context"

	"github.com/semel-go/semel"
)

// TxMarker is implemented by a TxStore that can write marks in a transaction of the caller.
type TxMarker[Tx any] interface {
	// MarkIn writes the marks in tx and returns their verdicts. After an error the caller must
	// roll tx back.
	MarkIn(ctx context.Context, tx Tx, marks []Mark) ([]Verdict, error)
}

// TxReceiver is implemented by a TxMarker with an inbox that can receive messages in a transaction
// of the caller.
type TxReceiver[Tx any] interface {
	// ReceiveIn writes marks with the outcome Waiting, as MarkIn does, and for each fresh mark an
	// inbox row of its message that is due now. Rows of duplicates are not changed.
	ReceiveIn(ctx context.Context, tx Tx, marks []Mark, messages []*semel.Message) ([]Verdict, error)
}

// TxScoper is implemented by a TxMarker with a single writer that can assign a scope in a
// transaction of the caller. TxStore.Scope would wait for that transaction if it has written.
type TxScoper[Tx any] interface {
	TurnTaker
	// ScopeIn does in tx what TxStore.Scope does. The number is valid once tx has committed.
	ScopeIn(ctx context.Context, tx Tx, consumer, source string, generation int64) (int64, error)
}

// Interner is implemented by a store that can assign the scopes of many sources at once. Producers
// choose their sources, so a batch may have as many new sources as messages. Without Interner, the
// engine calls TxStore.Scope for each of them.
type Interner interface {
	// Scopes does what TxStore.Scope does for several sources of one consumer, and returns the
	// numbers in the order of the sources. If statements cost a round trip, the number of
	// statements does not depend on the number of sources.
	Scopes(ctx context.Context, consumer string, sources []string, generation int64) ([]int64, error)
}
