package report

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
)

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
			guard.LogPanic(n.logger, n.consumer, fmt.Sprintf("observer %d of %d (a %T)", i+1, len(n.observers), n.observers[i]), value)
		}
	}()
	n.observers[i].Observe(e)
}
