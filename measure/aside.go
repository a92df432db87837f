package measure

import (
	"slices"

	"github.com/semel-go/semel"
)

// Aside is how a message ended without an effect and why, as labels of figures.
type Aside struct{ How, Reason string }

// How messages end without an effect.
const (
	parked       = "parked"
	deadLettered = "dead_lettered"
	discarded    = "discarded"
	conflict     = "conflict"
)

// setAside are the events of messages that end without an effect.
var setAside = map[semel.EventKind]string{
	semel.EventParked: parked, semel.EventDeadLettered: deadLettered, semel.EventDiscarded: discarded, semel.EventConflict: conflict,
}

// asides are all that can happen.
var asides = slices.Concat(
	// A policy says which of the two.
	endings([]string{parked, deadLettered}, semel.ReasonMalformed, semel.ReasonTooLarge, semel.ReasonNoIdentity, semel.ReasonBadIdentity,
		semel.ReasonIdentityTooLong, semel.ReasonUnknownType, semel.ReasonPermanent, semel.ReasonExhausted, semel.ReasonWaitTooLong,
		semel.ReasonMissingParameter, semel.ReasonBadEffects, semel.ReasonFiltered, semel.ReasonNoVersion),
	// A policy or a handler says which of the three.
	endings([]string{parked, deadLettered, discarded}, semel.ReasonPrecondition, semel.ReasonExpired, semel.ReasonOutcomeUnknown, noReason, otherReason),
	// Another content of a version, and what was marked until its copy was in the dead letters,
	// are no conflicts of an identity.
	endings([]string{conflict, parked, deadLettered}, semel.ReasonConflict),
	endings([]string{conflict, deadLettered}, semel.ReasonFormerConflict),
	endings([]string{parked}, semel.ReasonGap, semel.ReasonKills, semel.ReasonSteps, semel.ReasonUnreadable),
	endings([]string{discarded}, semel.ReasonStale),
)

func endings(hows []string, reasons ...semel.Reason) (all []Aside) {
	for _, how := range hows {
		for _, reason := range reasons {
			all = append(all, Aside{how, string(reason)})
		}
	}
	return all
}

// AsideOf is how the message of an event ended, and whether that was without an effect. It is one
// of Asides: a reason of Semel's, with which a handler ends a message otherwise than Semel does, is
// one of those that handlers name. A conflict has no reason of theirs.
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

// Asides are all that AsideOf may tell of. A counter of them begins at 0 for each: one that begins
// with its first message has not grown by it, and an alert that looks for growth does not see it.
func Asides() []Aside { return slices.Clone(asides) }
