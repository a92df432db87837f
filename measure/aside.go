package measure

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

// Aside has the labels of a message that ended without an effect: how, and the reason.
type Aside struct{ How, Reason string }

// The values of Aside.How.
const (
	parked       = "parked"
	deadLettered = "dead_lettered"
	discarded    = "discarded"
	conflict     = "conflict"
)

// setAside maps the events about messages that end without an effect to Aside.How.
var setAside = map[semel.EventKind]string{
	semel.EventParked: parked, semel.EventDeadLettered: deadLettered, semel.EventDiscarded: discarded, semel.EventConflict: conflict,
}

// asides are all combinations that occur.
var asides = slices.Concat(
	// The policy chooses between these two.
	endings([]string{parked, deadLettered}, semel.ReasonMalformed, semel.ReasonTooLarge, semel.ReasonNoIdentity, semel.ReasonBadIdentity,
		reasonname.IdentityTooLong, reasonname.UnknownType, semel.ReasonPermanent, semel.ReasonExhausted, reasonname.WaitTooLong,
		reasonname.MissingParameter, reasonname.BadEffects, reasonname.Filtered, reasonname.NoVersion),
	// The policy or the handler chooses between these three.
	endings([]string{parked, deadLettered, discarded}, semel.ReasonPrecondition, reasonname.Expired, semel.ReasonOutcomeUnknown, noReason, otherReason),
	// A version with other content, and a message that was marked before its copy reached the dead-letter topic,
	// have this reason although they are no conflicts of an identity.
	endings([]string{conflict, parked, deadLettered}, semel.ReasonConflict),
	endings([]string{conflict, deadLettered}, reasonname.FormerConflict),
	endings([]string{parked}, semel.ReasonGap, reasonname.Kills, reasonname.Steps, reasonname.Unreadable),
	endings([]string{discarded}, reasonname.Stale),
)

func endings(hows []string, reasons ...semel.Reason) (all []Aside) {
	for _, how := range hows {
		for _, reason := range reasons {
			all = append(all, Aside{how, string(reason)})
		}
	}
	return all
}

// AsideOf returns the labels of an event, and whether its message ended without an effect. The labels
// are one of Asides: if a handler uses one of Semel's reasons for an ending that Semel does not combine
// with it, the reason is "other", as for reasons of the handler's own.
func AsideOf(e semel.Event) (a Aside, ended bool) {
	how, ended := setAside[e.Kind]
	if !ended {
		return Aside{}, false
	}
	a = Aside{how, ReasonClass(e.Reason)}
	if !slices.Contains(asides, a) {
		a.Reason = otherReason
		if how == conflict {
			a.Reason = string(semel.ReasonConflict)
		}
	}
	return a, true
}

// Asides returns all values that AsideOf can return. Start the counter of each at 0: an alert on the
// increase of a counter misses the first message if the counter appears with it.
func Asides() []Aside { return slices.Clone(asides) }
