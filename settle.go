package semel

import (
	"github.com/semel-go/semel/internal/enum"
)

// String says what the broker is told.
func (k SettleKind) String() string {
	return enum.Name([]string{Ack: "ack", Nack: "hand back", DeadLetter: "dead letter"}, k, "SettleKind")
}

// SettleKind is what the broker is told of a delivery.
type SettleKind uint8

// The ways to settle.
const (
	// Ack: never deliver it again.
	Ack SettleKind = iota + 1
	// Nack: deliver it again, after Settlement.After where the broker can wait.
	Nack
	// DeadLetter: copy it durably to the broker's dead letters. The delivery
	// stays unsettled: its Ack follows when the store knows of the copy. A
	// crash between the two makes a second copy of the same identity.
	DeadLetter
)
