package store

import (
	"errors"

	"github.com/semel-go/semel/internal/enum"
)

// GenerationState is the state of a generation.
type GenerationState uint8

// The states.
const (
	// GenerationBuilding: a rebuild is filling it. A consumer has at most one such generation.
	GenerationBuilding GenerationState = iota + 1
	// GenerationActive: the consumer uses it. A consumer has exactly one such generation.
	GenerationActive
	// GenerationOld: it was active before a switch, and is kept.
	GenerationOld
	// GenerationDropped: its records are removed or are being removed.
	GenerationDropped
)

// String is the state's name.
func (s GenerationState) String() string {
	return enum.Name([]string{GenerationBuilding: "building", GenerationActive: "active", GenerationOld: "old", GenerationDropped: "dropped"}, s, "GenerationState")
}

// ErrGeneration is returned if the consumer may not use the generation, because another generation is
// active or a switch is in progress. Nothing was done.
var ErrGeneration = errors.New("the consumer may not work in this generation now")

// Working is the generation that a batch uses. With the zero value, for a consumer without generations,
// nothing is checked.
type Working struct {
	// Consumer is the name without a generation.
	Consumer string
	// Number is the generation. In is its required state: GenerationActive, or GenerationBuilding for a
	// rebuild; 0 means that nothing is checked.
	Number int64
	In     GenerationState
}
