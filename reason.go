package semel

// Reason is the name of why a message was set aside. Reasons the engine gives
// are the constants below; a handler may give its own.
type Reason string

// The engine's reasons.
const (
	ReasonNone             Reason = ""
	ReasonMalformed        Reason = "malformed"
	ReasonTooLarge         Reason = "too large"
	ReasonNoIdentity       Reason = "no identity"
	ReasonBadIdentity      Reason = "malformed identity"
	ReasonIdentityTooLong  Reason = "identity too long"
	ReasonConflict         Reason = "conflict"
	ReasonUnknownType      Reason = "unknown_type"
	ReasonPermanent        Reason = "permanent failure"
	ReasonExhausted        Reason = "attempts exhausted"
	ReasonWaitTooLong      Reason = "wait too long"
	ReasonPrecondition     Reason = "condition unmet"
	ReasonMissingParameter Reason = "missing parameter"
	// ReasonBadEffects: an endpoint answered with effects that its policy does not allow.
	ReasonBadEffects Reason = "bad effects"
	ReasonFiltered   Reason = "not for this consumer"
	ReasonNoVersion  Reason = "no version"
	// ReasonFormerConflict: its former identity is marked with another content.
	ReasonFormerConflict Reason = "conflict with a former identity"
	// ReasonStale: its stream is at a later version, or at this one.
	ReasonStale Reason = "stale version"
	// ReasonGap: an earlier version of its stream has not taken effect.
	ReasonGap Reason = "gap"
	// ReasonBehind: an earlier message of its key, or of its lane, waits or is parked.
	ReasonBehind Reason = "behind another"
	// ReasonExpired: it is older than what is kept, so that nobody can tell whether it took
	// effect before.
	ReasonExpired Reason = "too old"
	// ReasonKills: processes that began it never came to its end.
	ReasonKills Reason = "kills its process"
	// ReasonOutcomeUnknown: nobody knows whether a call for it took effect, and the other
	// side may have forgotten its key.
	ReasonOutcomeUnknown Reason = "outcome unknown"
	// ReasonSuppressed: somebody, or the run that wrote it, keeps it from being sent.
	ReasonSuppressed Reason = "suppressed"
	// ReasonSteps: the steps of it that are completed are not the first ones of its
	// consumer, which has been changed.
	ReasonSteps Reason = "steps changed"
	// ReasonUnreadable: it is encrypted, and the key for it was not given, or it was changed.
	ReasonUnreadable Reason = "unreadable"
	// ReasonErased: its payload was erased, and cannot be had back.
	ReasonErased Reason = "erased"
	// ReasonBusy, of a message that is handed back: a copy of it is in flight in
	// another process.
	ReasonBusy Reason = "copy in flight elsewhere"
	// ReasonNewer, of a message that is handed back: its marker says what this
	// release does not know, since a newer one wrote it.
	ReasonNewer Reason = "written by a newer release"
	// ReasonPaused, of a message that is handed back: an operator has paused the
	// consumer.
	ReasonPaused Reason = "paused"
)
