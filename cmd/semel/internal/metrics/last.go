package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/legible"
)

// LastError is the last error of a consumer. LastError is shown only to clients with access, because the error of a
// handler may contain parts of a message.
type LastError struct {
	At time.Time `json:"at"`
	// Event is the kind of event, as in the log.
	Event string `json:"event"`
	Error string `json:"error"`
}

// mostErrorText is the maximum length of a kept error in runes.
const mostErrorText = 300

// lastError keeps the last error of a consumer.
type lastError struct {
	mutex sync.Mutex
	kept  *LastError // immutable; guarded by mutex
}

// record keeps the error of an event, if it has one.
func (l *lastError) record(e semel.Event, now time.Time) {
	if e.Err == nil || e.Kind == eventkind.Control {
		return
	}
	text := []rune(strings.Join(strings.Fields(legible.Text(e.Err)), " "))
	if len(text) > mostErrorText {
		text = append(text[:mostErrorText-1], '…')
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.kept = &LastError{At: now, Event: string(e.Kind), Error: string(text)}
}

func (l *lastError) last() *LastError {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.kept
}

// lastOf returns the last error of a consumer; nil if there was none.
func (w *Watch) lastOf(name string) *LastError {
	if of := w.consumer(name); of != nil {
		return of.last.last()
	}
	return nil
}
