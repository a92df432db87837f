package semel

import (
	"github.com/semel-go/semel/internal/enum"
)

// String returns the name of the kind.
func (k SettleKind) String() string {
	return enum.Name([]string{Ack: "ack", Nack: "hand back", DeadLetter: "dead letter"}, k, "SettleKind")
}

// SettleKind is the answer to the broker about a delivery: ack, nack or dead letter.
type SettleKind uint8

const (
	// Ack means that the broker must not deliver the message again.
	Ack SettleKind = iota + 1
	// Nack means that the broker should deliver the message again, after Settlement.After if the broker
	// supports a delay.
	Nack
	// DeadLetter means that the message is copied durably to the dead-letter topic. The delivery is acked after the
	// store has recorded the copy. A crash before the store has recorded the copy causes a second copy with the same
	// identity.
	DeadLetter
)
