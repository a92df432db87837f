// Package semelheader contains the names of the headers that Semel writes.
package semelheader

// The headers of outputs. With these headers, a person can follow a message from its cause to its effects.
const (
	// Causation contains the id of the message that caused this message.
	Causation = "semel-causation-id"
	// Correlation contains the id of the first message in the chain of causes.
	Correlation = "semel-correlation-id"
)

// IntentKey contains Intent.Key. It is a header of the sender's message.
const IntentKey = "semel-intent-key"

// Length contains the length of a body in bytes, in decimal digits. It is a header of a message that was
// parked because the body is too large. The stored body contains only the first 64 KiB.
const Length = "semel-length"
