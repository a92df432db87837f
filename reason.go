package semel

// Reason is the name of the reason why a message was parked or ended. "" means that there is no reason. The
// constants are those reasons of the engine to which programs react. docs/internals/outcomes.md lists all
// reasons. A handler may use its own reasons.
type Reason string

// The engine's reasons to which programs react.
const (
	ReasonMalformed    Reason = "malformed"
	ReasonTooLarge     Reason = "too large"
	ReasonNoIdentity   Reason = "no identity"
	ReasonBadIdentity  Reason = "malformed identity"
	ReasonConflict     Reason = "conflict"
	ReasonPermanent    Reason = "permanent failure"
	ReasonExhausted    Reason = "attempts exhausted"
	ReasonPrecondition Reason = "condition unmet"
	// ReasonGap means that an earlier version of the stream has not been applied.
	ReasonGap Reason = "gap"
	// ReasonOutcomeUnknown means that the outcome of a call is unknown, and that the other system may have
	// forgotten its idempotency key.
	ReasonOutcomeUnknown Reason = "outcome unknown"
	// ReasonPaused means that the message was returned because an operator has paused the consumer.
	ReasonPaused Reason = "paused"
)
