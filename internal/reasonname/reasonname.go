// Package reasonname contains the engine's reasons to which programs do not react. The other reasons are
// constants of package semel.
package reasonname

import "github.com/semel-go/semel"

// The reasons.
const (
	None             semel.Reason = ""
	IdentityTooLong  semel.Reason = "identity too long"
	UnknownType      semel.Reason = "unknown type"
	WaitTooLong      semel.Reason = "wait too long"
	MissingParameter semel.Reason = "missing parameter"
	// BadEffects means that an endpoint responded with effects that its policy does not allow.
	BadEffects semel.Reason = "bad effects"
	Filtered   semel.Reason = "not for this consumer"
	NoVersion  semel.Reason = "no version"
	// FormerConflict means that the message's previous identity is marked with other content.
	FormerConflict semel.Reason = "conflict with a former identity"
	// Stale means that the stream of the message is already at this version or a later version.
	Stale semel.Reason = "stale version"
	// Behind means that an earlier message of the same key or lane waits or is parked.
	Behind semel.Reason = "behind another"
	// Expired means that the message is older than the retention of markers, so it may have been applied
	// before.
	Expired semel.Reason = "too old"
	// Kills means that processes that started the message crashed before its handler finished.
	Kills semel.Reason = "kills its process"
	// Suppressed means that the intent is not sent, because an operator or the replay that wrote the intent
	// has suppressed it.
	Suppressed semel.Reason = "suppressed"
	// Steps means that the completed steps of the message are not the first steps of its consumer, because
	// the consumer was changed.
	Steps semel.Reason = "steps changed"
	// Unreadable means that the message is encrypted with a key that is not configured, or that its
	// ciphertext was changed.
	Unreadable semel.Reason = "unreadable"
	// Erased means that the payload was erased and cannot be restored.
	Erased semel.Reason = "erased"
	// Busy means that the message was returned because another process is processing a copy.
	Busy semel.Reason = "copy in flight elsewhere"
	// Newer means that the message was returned because a newer release wrote its marker and this release
	// does not know the meaning of the marker.
	Newer semel.Reason = "written by a newer release"
)
