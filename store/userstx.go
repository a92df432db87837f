package store

import (
	"context"

	"github.com/semel-go/semel"
)

// CallerTx is implemented by a TxStore with an inbox that can write marks and inbox rows in a transaction
// of the caller.
type CallerTx[Tx any] interface {
	// MarkIn writes the marks in tx and returns their verdicts. After an error the caller must
	// roll tx back.
	MarkIn(ctx context.Context, tx Tx, marks []Mark) ([]Verdict, error)
	// ReceiveIn does what MarkIn does and writes an inbox row for the message of each fresh mark.
	// Without a reason the marks have the outcome Waiting and the rows are due now. With a reason
	// the marks have the outcome Parked and the rows are parked with it, so that they are processed
	// only if an operator retries them. Rows of duplicates are not changed.
	ReceiveIn(ctx context.Context, tx Tx, marks []Mark, messages []*semel.Message, reason semel.Reason) ([]Verdict, error)
	// ScopeIn does what TxStore.Scope does, for a caller whose open transaction is tx. In a store
	// with a single writer it works in tx, because TxStore.Scope would wait for that transaction,
	// and the number is valid once tx has committed.
	ScopeIn(ctx context.Context, tx Tx, consumer, source string, generation int64) (int64, error)
}
