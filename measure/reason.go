package measure

import (
	"slices"

	"github.com/semel-go/semel"
)

// The classes of reasons that are none of Semel's.
const (
	noReason    = "none"
	otherReason = "other"
)

// own are Semel's own reasons.
var own = []semel.Reason{
	semel.ReasonMalformed, semel.ReasonTooLarge, semel.ReasonNoIdentity, semel.ReasonBadIdentity, semel.ReasonIdentityTooLong,
	semel.ReasonConflict, semel.ReasonUnknownType, semel.ReasonPermanent, semel.ReasonExhausted, semel.ReasonWaitTooLong,
	semel.ReasonPrecondition, semel.ReasonMissingParameter, semel.ReasonBadEffects, semel.ReasonFiltered, semel.ReasonNoVersion,
	semel.ReasonFormerConflict, semel.ReasonStale, semel.ReasonGap, semel.ReasonBehind, semel.ReasonExpired, semel.ReasonKills,
	semel.ReasonOutcomeUnknown, semel.ReasonSuppressed, semel.ReasonSteps, semel.ReasonUnreadable, semel.ReasonErased, "reopened",
	semel.ReasonBusy, semel.ReasonNewer, semel.ReasonPaused,
}

// ReasonClass is a reason as a label of figures: one of Semel's own, "none", or "other" for all
// that handlers name, which may be any text, and any number of them.
func ReasonClass(r semel.Reason) string {
	switch {
	case r == semel.ReasonNone:
		return noReason
	case OwnReason(r):
		return string(r)
	}
	return otherReason
}

// OwnReason reports whether a reason is one of Semel's own, and not a handler's.
func OwnReason(r semel.Reason) bool { return slices.Contains(own, r) }
