package store

import (
	"github.com/semel-go/semel"
)

// QueueReceiver is implemented by a TxStore whose handlers queue their statements. It receives or parks
// messages with queued statements.
type QueueReceiver[Tx any] interface {
	// ReceiveQueued queues the statements of CallerTx.ReceiveIn. judge is
	// called with the verdicts before the commit. Its error counts as an error of the handler that
	// uses tx.
	ReceiveQueued(tx Tx, marks []Mark, messages []*semel.Message, reason semel.Reason, judge func([]Verdict) error) error
}
