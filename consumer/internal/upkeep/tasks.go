// Package upkeep maintains a store beside the batches of a consumer: it records how far a run is,
// removes what is past its retention, seals the audit chain, and frees lines of the inbox.
package upkeep

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/timing"
)

// Task is periodic maintenance of the store, such as sealing audit records or removing old markers. Each
// process of a consumer has its tasks; the store lets one process at a time do the work of each.
type Task struct {
	at time.Time
	// do works for a moment and returns when it is to be called again.
	do func(base context.Context) (wait time.Duration)
}

// afterGoexit is the wait after which a task is called again that ended its goroutine.
const afterGoexit = 30 * time.Second

// Run runs tasks one after the other until base ends. Run may be called again with the same
// tasks: foreign code that a task calls may end the goroutine (runtime.Goexit).
func Run(base context.Context, tasks []*Task) {
	for {
		next := slices.MinFunc(tasks, func(a, b *Task) int { return a.at.Compare(b.at) })
		if !timing.Wait(base, time.Until(next.at)) {
			return
		}
		next.at = time.Now().Add(afterGoexit)
		wait := next.do(base)
		next.at = time.Now().Add(wait)
	}
}
