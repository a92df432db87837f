package reading

import "github.com/semel-go/semel"

// Decoder fills a message with the data that a source has read. A Decoder runs in the goroutine that computes
// identity and fingerprint, and uses the same room, so that the text is parsed only once.
type Decoder interface {
	// Decode is called once per delivery, before the message is used. A source that wraps another source may
	// pass a delivery twice. A second call, even a concurrent one, must return the same result. If the
	// message cannot be read, Decode returns the reason and a description of the fault.
	Decode(room *Room, m *semel.Message) (refused semel.Reason, detail string)
}

// Printer is implemented by Semel's own fingerprinters, which can read a message in a room.
type Printer interface {
	FingerprintIn(room *Room, m *semel.Message) (semel.Fingerprint, error)
}
