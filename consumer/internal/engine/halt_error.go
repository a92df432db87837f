package engine

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
)

// haltError is the error of a run that a message stopped; the error contains the name of the message.
type haltError struct {
	key    semel.Key
	reason semel.Reason
	err    error
	// fromInbox means that the message is a row of the inbox.
	fromInbox bool
}

// Error returns one line without control characters. Programs print the error of Run, and the error of a handler or of
// a database may contain text of a payload.
func (e *haltError) Error() string {
	text := fmt.Sprintf("consumer %s halted by message %q of source %q: %s", e.key.Consumer, e.key.ID, e.key.Source, legible.Printable(string(e.reason)))
	if e.err != nil {
		text += ": " + legible.Printable(legible.Text(e.err))
	}
	if e.fromInbox {
		return text + "; it waits in the inbox and is tried again at the next start"
	}
	return text + "; it is unsettled and is delivered again at the next start"
}

func (e *haltError) Unwrap() []error { return []error{semel.ErrHalted, e.err} }
