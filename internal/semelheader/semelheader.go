// Package semelheader contains the names of the headers that Semel writes.
package semelheader

// The headers of outputs. With these headers, a person can follow a message from its cause to its effects.
const (
	// Causation is the header that contains the id of the message that caused the output.
	Causation = "semel-causation-id"
	// Correlation is the header that contains the id of the first message in the chain of causes.
	Correlation = "semel-correlation-id"
)

// IntentKey is a header of the sender's message; it contains Intent.Key.
const IntentKey = "semel-intent-key"

// Length is a header of a message that was parked because its body is too large. The header contains the length of the
// body in bytes, in decimal digits. The stored body contains only the first 64 KiB.
const Length = "semel-length"
