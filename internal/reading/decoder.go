package reading

import "github.com/semel-go/semel"

// Decoder makes a message of what a source read, in the goroutine that asks for
// identity and fingerprint, and in its room: the text is parsed there once.
type Decoder interface {
	// Decode is called before anybody looks at the message, once a delivery; a
	// source around another may hand a delivery on twice, and the second call, also
	// beside the first, answers the same. It returns why the message cannot be read,
	// and what people are told of that.
	Decode(room *Room, m *semel.Message) (refused semel.Reason, detail string)
}

// Printer is a fingerprinter that reads in a room: one of Semel's own.
type Printer interface {
	FingerprintIn(room *Room, m *semel.Message) (semel.Fingerprint, error)
}
