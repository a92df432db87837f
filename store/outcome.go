package store

import "github.com/semel-go/semel/internal/enum"

// String returns the name of the outcome.
func (o Outcome) String() string {
	return enum.Name([]string{Applied: "applied", Waiting: "waiting", Parked: "parked", DeadLettered: "dead_lettered", Discarded: "discarded"}, o, "Outcome")
}

// Outcome is the outcome in the marker of an identity. An Outcome can have every number that may be stored, so
// that the outcome of a newer release can be reported.
type Outcome int64

// The outcomes. Their numbers are stored and never change.
const (
	Applied Outcome = 1
	// Waiting means that the message is in the inbox and has not been applied yet.
	Waiting      Outcome = 2
	Parked       Outcome = 3
	DeadLettered Outcome = 4
	Discarded    Outcome = 5
)
