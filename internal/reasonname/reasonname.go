// Package reasonname contains the engine's reasons on which programs do not act. The others are constants of
// package semel.
package reasonname

import "github.com/semel-go/semel"

// The reasons.
const (
	None             semel.Reason = ""
	IdentityTooLong  semel.Reason = "identity too long"
	UnknownType      semel.Reason = "unknown type"
	WaitTooLong      semel.Reason = "wait too long"
	MissingParameter semel.Reason = "missing parameter"
	// BadEffects: an endpoint responded with effects that its policy does not allow.
	BadEffects semel.Reason = "bad effects"
	Filtered   semel.Reason = "not for this consumer"
	NoVersion  semel.Reason = "no version"
	// FormerConflict: the message's previous identity is marked with other content.
	FormerConflict semel.Reason = "conflict with a former identity"
	// Stale: the stream of the message is already at this version or a later one.
	Stale semel.Reason = "stale version"
	// Behind: an earlier message of the same key or lane waits or is parked.
	Behind semel.Reason = "behind another"
	// Expired: the message is older than the retention of markers, so it may have been applied before.
	Expired semel.Reason = "too old"
	// Kills: processes that started the message crashed before its handler finished.
	Kills semel.Reason = "kills its process"
	// Suppressed: an operator, or the replay that wrote the intent, keeps it from being sent.
	Suppressed semel.Reason = "suppressed"
	// Steps: the completed steps of the message are not the first steps of its consumer, because the consumer was
	// changed.
	Steps semel.Reason = "steps changed"
	// Unreadable: the message is encrypted with a key that is not configured, or its ciphertext was changed.
	Unreadable semel.Reason = "unreadable"
	// Erased: the payload was erased and cannot be restored.
	Erased semel.Reason = "erased"
	// Busy: the message was released because another process is processing a copy.
	Busy semel.Reason = "copy in flight elsewhere"
	// Newer: the message was released because a newer release wrote its marker and this release does not know its
	// meaning.
	Newer semel.Reason = "written by a newer release"
)
