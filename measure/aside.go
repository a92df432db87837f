package measure

import (
	"maps"
	"slices"

	"github.com/semel-go/semel"
)

// setAside are the events of messages that end without an effect.
var setAside = map[semel.EventKind]string{
	semel.EventParked: "parked", semel.EventDeadLettered: "dead_lettered", semel.EventDiscarded: "discarded", semel.EventConflict: "conflict",
}

// SetAside is how a message ended without an effect of which an event of this kind tells, as the
// value of the label "how" of figures; empty: it did not.
func SetAside(kind semel.EventKind) string { return setAside[kind] }

// SetAsides are the values of the label "how" of figures, in their order.
func SetAsides() []string { return slices.Sorted(maps.Values(setAside)) }
