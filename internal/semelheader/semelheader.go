// Package semelheader has the names of the headers that Semel writes.
package semelheader

// The headers that outputs carry, so that a person can follow a message from its cause to
// its effects.
const (
	// Causation holds the id of the message that caused this one.
	Causation = "semel-causation-id"
	// Correlation holds the id of the message that began it all.
	Correlation = "semel-correlation-id"
)

// IntentKey holds Intent.Key in the message that a sender gets.
const IntentKey = "semel-intent-key"

// Length is the header that a message set aside as too large gets: the length of its body in
// bytes, in decimal digits. The body is the first 64 KiB of it.
const Length = "semel-length"
