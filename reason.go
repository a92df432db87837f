package semel

// Reason is the name of the reason why a message was parked or ended; "" means none. The constants are the
// engine's reasons on which programs act; docs/internals/outcomes.md lists all of them. A handler may use its own reasons.
type Reason string

// The engine's reasons on which programs act.
const (
	ReasonMalformed    Reason = "malformed"
	ReasonTooLarge     Reason = "too large"
	ReasonNoIdentity   Reason = "no identity"
	ReasonBadIdentity  Reason = "malformed identity"
	ReasonConflict     Reason = "conflict"
	ReasonPermanent    Reason = "permanent failure"
	ReasonExhausted    Reason = "attempts exhausted"
	ReasonPrecondition Reason = "condition unmet"
	// ReasonGap: an earlier version of the stream has not been applied.
	ReasonGap Reason = "gap"
	// ReasonOutcomeUnknown: the outcome of a call is unknown, and the other system may have forgotten its
	// idempotency key.
	ReasonOutcomeUnknown Reason = "outcome unknown"
	// ReasonPaused: the message was released because an operator has paused the consumer.
	ReasonPaused Reason = "paused"
)
