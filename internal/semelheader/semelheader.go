// Package semelheader contains the names of the headers that Semel writes.
package semelheader

// The headers of outputs. They let a person follow a message from its cause to its effects.
const (
	// Causation contains the id of the message that caused this one.
	Causation = "semel-causation-id"
	// Correlation contains the id of the first message of the chain.
	Correlation = "semel-correlation-id"
)

// IntentKey contains Intent.Key, in the sender's message.
const IntentKey = "semel-intent-key"

// Length is a header of a message that was parked because it is too large: the length of its body in bytes, in
// decimal digits. The stored body contains only the first 64 KiB.
const Length = "semel-length"
