package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/legible"
)

// LastError is the last error of a consumer. Only clients with access see LastError, because an error of a
// handler may contain parts of a message.
type LastError struct {
	At time.Time `json:"at"`
	// Event is the kind of the event, as in the log.
	Event string `json:"event"`
	Error string `json:"error"`
}

// mostErrorText is the maximum length of a stored error, in characters.
const mostErrorText = 300

// lastError stores the last error of a consumer.
type lastError struct {
	mutex  sync.Mutex
	latest *LastError // not changed after it is set; guarded by mutex
}

// record stores the error of an event. Events without an error are ignored.
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
	l.latest = &LastError{At: now, Event: string(e.Kind), Error: string(text)}
}

func (l *lastError) get() *LastError {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.latest
}

// lastOf returns the last error of a consumer, or nil if the consumer had none.
func (w *Watch) lastOf(name string) *LastError {
	if of := w.consumer(name); of != nil {
		return of.last.get()
	}
	return nil
}
