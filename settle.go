package semel

import (
	"github.com/semel-go/semel/internal/enum"
)

// String returns the name of the kind.
func (k SettleKind) String() string {
	return enum.Name([]string{Ack: "ack", Nack: "hand back", DeadLetter: "dead letter"}, k, "SettleKind")
}

// SettleKind is how a delivery is settled with the broker.
type SettleKind uint8

// The ways to settle.
const (
	// Ack: the broker must not deliver the message again.
	Ack SettleKind = iota + 1
	// Nack: the broker should deliver the message again, after Settlement.After if the broker supports a delay.
	Nack
	// DeadLetter: copy the message durably to the dead-letter topic. The delivery stays unsettled until the store
	// has recorded the copy; then it is acked. A crash in between causes a second copy with the same identity.
	DeadLetter
)
