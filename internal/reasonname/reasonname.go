// Package reasonname has the engine's reasons that programs of users do not act on; those that
// they do are constants of package semel.
package reasonname

import "github.com/semel-go/semel"

// The reasons.
const (
	None             semel.Reason = ""
	IdentityTooLong  semel.Reason = "identity too long"
	UnknownType      semel.Reason = "unknown_type"
	WaitTooLong      semel.Reason = "wait too long"
	MissingParameter semel.Reason = "missing parameter"
	// BadEffects: an endpoint answered with effects that its policy does not allow.
	BadEffects semel.Reason = "bad effects"
	Filtered   semel.Reason = "not for this consumer"
	NoVersion  semel.Reason = "no version"
	// FormerConflict: its former identity is marked with another content.
	FormerConflict semel.Reason = "conflict with a former identity"
	// Stale: its stream is at a later version, or at this one.
	Stale semel.Reason = "stale version"
	// Behind: an earlier message of its key, or of its lane, waits or is parked.
	Behind semel.Reason = "behind another"
	// Expired: it is older than what is kept, so that nobody can tell whether it took
	// effect before.
	Expired semel.Reason = "too old"
	// Kills: processes that began it never came to its end.
	Kills semel.Reason = "kills its process"
	// Suppressed: somebody, or the run that wrote it, keeps it from being sent.
	Suppressed semel.Reason = "suppressed"
	// Steps: the steps of it that are completed are not the first ones of its
	// consumer, which has been changed.
	Steps semel.Reason = "steps changed"
	// Unreadable: it is encrypted, and the key for it was not given, or it was changed.
	Unreadable semel.Reason = "unreadable"
	// Erased: its payload was erased, and cannot be had back.
	Erased semel.Reason = "erased"
	// Busy, of a message that is handed back: a copy of it is in flight in
	// another process.
	Busy semel.Reason = "copy in flight elsewhere"
	// Newer, of a message that is handed back: its marker says what this
	// release does not know, since a newer one wrote it.
	Newer semel.Reason = "written by a newer release"
)
