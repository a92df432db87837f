package measure

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

// The classes of reasons that are not Semel's own.
const (
	noReason    = "none"
	otherReason = "other"
)

// own are Semel's own reasons.
var own = []semel.Reason{
	semel.ReasonMalformed, semel.ReasonTooLarge, semel.ReasonNoIdentity, semel.ReasonBadIdentity, reasonname.IdentityTooLong,
	semel.ReasonConflict, reasonname.UnknownType, semel.ReasonPermanent, semel.ReasonExhausted, reasonname.WaitTooLong,
	semel.ReasonPrecondition, reasonname.MissingParameter, reasonname.BadEffects, reasonname.Filtered, reasonname.NoVersion,
	reasonname.FormerConflict, reasonname.Stale, semel.ReasonGap, reasonname.Behind, reasonname.Expired, reasonname.Kills,
	semel.ReasonOutcomeUnknown, reasonname.Suppressed, reasonname.Steps, reasonname.Unreadable, reasonname.Erased, "reopened",
	reasonname.Busy, reasonname.Newer, semel.ReasonPaused,
}

// ReasonClass returns the value of the label for a reason: the reason itself if it is one of Semel's own, "none"
// if there is none, and "other" for reasons of handlers, because those can be any number of different texts.
func ReasonClass(r semel.Reason) string {
	switch {
	case r == reasonname.None:
		return noReason
	case OwnReason(r):
		return string(r)
	}
	return otherReason
}

// OwnReason reports whether r is one of Semel's own reasons.
func OwnReason(r semel.Reason) bool { return slices.Contains(own, r) }
