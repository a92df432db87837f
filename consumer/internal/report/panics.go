package report

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
)

// LogPanic logs a panic with its stack. It leaves out the panic's value, which may contain a
// payload.
func LogPanic(logger *slog.Logger, consumer, where string, value any) {
	logger.Error(where+" panicked; this is a fault of the program", "consumer", consumer, "panic", legible.Panic(value), "stack", string(debug.Stack()))
}

// observe calls one observer. The first panic of an observer is logged, and the other observers
// still get the event.
func (n *Reporter) observe(i int, e semel.Event) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		n.mutex.Lock()
		first := !n.panicked[i]
		if n.panicked == nil {
			n.panicked = map[int]bool{}
		}
		n.panicked[i] = true
		n.mutex.Unlock()
		if first {
			LogPanic(n.logger, n.consumer, fmt.Sprintf("observer %d of %d (a %T)", i+1, len(n.observers), n.observers[i]), value)
		}
	}()
	n.observers[i].Observe(e)
}
