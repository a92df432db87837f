package store

import "github.com/semel-go/semel/internal/enum"

// String returns the name of the outcome.
func (o Outcome) String() string {
	return enum.Name([]string{Applied: "applied", Waiting: "waiting", Parked: "parked", DeadLettered: "dead_lettered", Discarded: "discarded"}, o, "Outcome")
}

// Outcome is the outcome of an identity in its marker. Outcome can hold every stored number, so that an
// outcome of a newer release can be reported.
type Outcome int64

// The outcomes. Their numbers are stored and never change.
const (
	Applied Outcome = 1
	// Waiting: the message is in the inbox and has not been applied yet.
	Waiting      Outcome = 2
	Parked       Outcome = 3
	DeadLettered Outcome = 4
	Discarded    Outcome = 5
)
