package semel

// Reason is the name of why a message was set aside; "" is none. The constants are those of
// the engine's reasons that programs act on; docs/reference/guarantees.md has them all. A handler may
// give its own.
type Reason string

// The engine's reasons that programs act on.
const (
	ReasonMalformed    Reason = "malformed"
	ReasonTooLarge     Reason = "too large"
	ReasonNoIdentity   Reason = "no identity"
	ReasonBadIdentity  Reason = "malformed identity"
	ReasonConflict     Reason = "conflict"
	ReasonPermanent    Reason = "permanent failure"
	ReasonExhausted    Reason = "attempts exhausted"
	ReasonPrecondition Reason = "condition unmet"
	// ReasonGap: an earlier version of its stream has not taken effect.
	ReasonGap Reason = "gap"
	// ReasonOutcomeUnknown: nobody knows whether a call for it took effect, and the other
	// side may have forgotten its key.
	ReasonOutcomeUnknown Reason = "outcome unknown"
	// ReasonPaused, of a message that is handed back: an operator has paused the
	// consumer.
	ReasonPaused Reason = "paused"
)
