package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/legible"
)

// LastError is what a consumer met last, for who has access: an error of a handler may say
// something of a message.
type LastError struct {
	At time.Time `json:"at"`
	// Event is what happened, as the log names it.
	Event string `json:"event"`
	Error string `json:"error"`
}

// mostErrorText is how many runes of an error are kept.
const mostErrorText = 300

// lastError keeps the last error of a consumer.
type lastError struct {
	mutex sync.Mutex
	kept  *LastError // never changed once it is kept; guarded by mutex
}

// record keeps what an event says, if it is one of an error.
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

// lastOf is the last error of a consumer; nil without one.
func (w *Watch) lastOf(name string) *LastError {
	if of := w.consumer(name); of != nil {
		return of.last.last()
	}
	return nil
}
