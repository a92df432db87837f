package contract

import (
	"context"

	"github.com/semel-go/semel"
)

// TxParker is an optional ability of a TxReceiver: to set messages aside inside a
// transaction that the user opened, as those that are not to be worked on unless somebody
// says so.
type TxParker[Tx any] interface {
	// ParkIn is ReceiveIn for marks that say Parked: the row of each that is fresh is
	// parked for this reason.
	ParkIn(ctx context.Context, tx Tx, marks []Mark, messages []*semel.Message, reason semel.Reason) ([]Verdict, error)
}

// QueueReceiver is an optional ability of a TxStore whose handlers queue their statements:
// to receive messages, or park them, by statements that are queued.
type QueueReceiver[Tx any] interface {
	// ReceiveQueued queues what ReceiveIn does, or ParkIn if there is a reason. judge gets
	// the verdicts before the commit; its error is that of the message whose Tx this is, as
	// its handler's would be.
	ReceiveQueued(tx Tx, marks []Mark, messages []*semel.Message, reason semel.Reason, judge func([]Verdict) error) error
}

// IntentHolder is an optional ability of an Inbox: to keep rows that wait from being worked
// on. Acts are recorded as those of an Inbox.
type IntentHolder interface {
	// Suppress parks a row that waits and is not in progress, with semel.ReasonSuppressed,
	// and its marker with it. Requeue makes it due again. semel.ErrChanged: the row has
	// another revision; semel.ErrState: its state does not allow it. Nothing is changed
	// then.
	Suppress(ctx context.Context, number, revision int64, a Act) error
}
