package contract

import "github.com/semel-go/semel/internal/enum"

// String is the outcome's name.
func (o Outcome) String() string {
	return enum.Name([]string{Applied: "applied", Waiting: "waiting", Parked: "parked", DeadLettered: "dead_lettered", Discarded: "discarded"}, o, "Outcome")
}

// Outcome is what became of an identity, as its marker says. It holds any number
// that a column can, so that one of a newer release is named as it stands there.
type Outcome int64

// The outcomes. Their numbers are stored and never change.
const (
	Applied Outcome = 1
	// Waiting: the message is in the inbox, and has not taken effect yet.
	Waiting      Outcome = 2
	Parked       Outcome = 3
	DeadLettered Outcome = 4
	Discarded    Outcome = 5
)
