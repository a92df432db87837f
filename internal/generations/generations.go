// Package generations defines the generations of a consumer. Each generation has its own markers. Only one generation
// is active; a rebuild fills another generation.
package generations

import (
	"errors"

	"github.com/semel-go/semel/internal/enum"
)

// State is the state of a generation.
type State uint8

// The states.
const (
	// Building means that a rebuild is filling the generation. A consumer has at most one building generation.
	Building State = iota + 1
	// Active means that the consumer uses the generation. A consumer has exactly one active generation.
	Active
	// Old means that the generation was active before a switch, and that its records still exist.
	Old
	// Dropped means that the records of the generation are removed or are being removed.
	Dropped
)

// String returns the name of the state.
func (s State) String() string {
	return enum.Name([]string{Building: "building", Active: "active", Old: "old", Dropped: "dropped"}, s, "GenerationState")
}

// ErrNotUsable means that the consumer may not use the generation, because another generation is active or a
// switch is in progress. Nothing was changed.
var ErrNotUsable = errors.New("the consumer may not work in this generation now")

// Working is the generation that a batch uses. The zero value is for consumers without generations, whose batches are
// not checked.
type Working struct {
	// Consumer is the name without a generation.
	Consumer string
	// Number is the number of the generation. The field In is the required state of the generation: Active, or Building
	// for a rebuild. If In is 0, the state is not checked.
	Number int64
	In     State
}
