package runs

import (
	"bytes"
	"log"
	"log/slog"

	"github.com/semel-go/semel/internal/legible"
)

// logBridge writes lines of the standard library's log package to the log of the command. Some libraries use
// the standard log package.
type logBridge struct{ log *slog.Logger }

// unsolicitedPrefix is the start of a log line in which net/http quotes bytes that a server sent.
const unsolicitedPrefix = "Unsolicited response received on idle HTTP channel"

func redirectLog(l *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(logBridge{l})
}

// Write implements io.Writer. If the line quotes the response of an endpoint, Write logs a fixed text instead
// of the line.
func (o logBridge) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte(unsolicitedPrefix)) {
		o.log.Warn("an endpoint sent more than one answer to a call, or a body where none may be; the connection is closed. If such an answer arrives after the next call has begun, it is read as the answer of that call: correct the endpoint")
	} else {
		o.log.Warn(legible.Printable(string(bytes.TrimSpace(line))))
	}
	return len(line), nil
}
