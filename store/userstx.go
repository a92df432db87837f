package store

import (
	"context"

	"github.com/semel-go/semel"
)

// CallerTx is implemented by a TxStore with an inbox that can write markers and inbox rows in a transaction of
// the caller.
type CallerTx[Tx any] interface {
	// MarkIn writes the markers in tx and returns one Verdict for each mark. After an error the caller must roll tx
	// back.
	MarkIn(ctx context.Context, tx Tx, marks []Mark) ([]Verdict, error)
	// ReceiveIn does the same as MarkIn, and also writes an inbox row for each message that is new (Fresh). Without a
	// reason, the marks have the outcome Waiting, and the rows can be claimed at once. With a reason, the marks have
	// the outcome Parked and the rows are parked with that reason, so that they are processed only if an operator
	// retries them. Rows of duplicates are not changed.
	ReceiveIn(ctx context.Context, tx Tx, marks []Mark, messages []*semel.Message, reason semel.Reason) ([]Verdict, error)
	// ScopeIn does the same as TxStore.Scope, for a caller whose open transaction is tx. In a store with a single
	// writer, ScopeIn works in tx, because TxStore.Scope would wait for that transaction; the number is then valid only
	// after tx has committed.
	ScopeIn(ctx context.Context, tx Tx, consumer, source string, generation int64) (int64, error)
}
