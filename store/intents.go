package store

import (
	"context"

	"github.com/semel-go/semel"
)

// TxParker is implemented by a TxReceiver that can park messages in a transaction of the caller, so that
// they are processed only if an operator retries them.
type TxParker[Tx any] interface {
	// ParkIn does what ReceiveIn does for marks with the outcome Parked: the row of each fresh mark is
	// parked with this reason.
	ParkIn(ctx context.Context, tx Tx, marks []Mark, messages []*semel.Message, reason semel.Reason) ([]Verdict, error)
}

// QueueReceiver is implemented by a TxStore whose handlers queue their statements. It receives or parks
// messages with queued statements.
type QueueReceiver[Tx any] interface {
	// ReceiveQueued queues the statements of ReceiveIn, or of ParkIn if there is a reason. judge is
	// called with the verdicts before the commit. Its error counts as an error of the handler that
	// uses tx.
	ReceiveQueued(tx Tx, marks []Mark, messages []*semel.Message, reason semel.Reason, judge func([]Verdict) error) error
}
