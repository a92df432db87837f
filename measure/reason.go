package measure

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

// The classes of reasons that are none of Semel's.
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

// ReasonClass is a reason as a label of figures: one of Semel's own, "none", or "other" for all
// that handlers name, which may be any text, and any number of them.
func ReasonClass(r semel.Reason) string {
	switch {
	case r == reasonname.None:
		return noReason
	case OwnReason(r):
		return string(r)
	}
	return otherReason
}

// OwnReason reports whether a reason is one of Semel's own, and not a handler's.
func OwnReason(r semel.Reason) bool { return slices.Contains(own, r) }
