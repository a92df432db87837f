// Package generations defines the generations of a consumer, which are separate scopes of deduplication: one is
// active, and a rebuild fills another.
package generations

import (
	"errors"

	"github.com/semel-go/semel/internal/enum"
)

// State is the state of a generation.
type State uint8

// The states.
const (
	// Building: a rebuild is filling it. A consumer has at most one such generation.
	Building State = iota + 1
	// Active: the consumer uses it. A consumer has exactly one such generation.
	Active
	// Old: it was active before a switch, and is kept.
	Old
	// Dropped: its records are removed or are being removed.
	Dropped
)

// String is the state's name.
func (s State) String() string {
	return enum.Name([]string{Building: "building", Active: "active", Old: "old", Dropped: "dropped"}, s, "GenerationState")
}

// ErrNotUsable is returned if the consumer may not use the generation, because another generation is
// active or a switch is in progress. Nothing was done.
var ErrNotUsable = errors.New("the consumer may not work in this generation now")

// Working is the generation that a batch uses. With the zero value, for a consumer without generations,
// nothing is checked.
type Working struct {
	// Consumer is the name without a generation.
	Consumer string
	// Number is the generation. In is its required state: Active, or Building for a
	// rebuild; 0 means that nothing is checked.
	Number int64
	In     State
}
