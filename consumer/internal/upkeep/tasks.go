// Package upkeep maintains a store while a consumer runs: it records the progress of the run, removes markers that are
// older than the retention, adds audit records to the audit chain, and unblocks messages of the inbox.
package upkeep

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/timing"
)

// Task is periodic maintenance of the store, such as removing old markers. Each process of a consumer has the same
// tasks. The store lets only one process at a time do the work of a task.
type Task struct {
	at time.Time
	// step works for a short time and returns the delay before its next call.
	step func(base context.Context) (wait time.Duration)
}

// afterGoexit is the delay before the next call of a task that has called runtime.Goexit.
const afterGoexit = 30 * time.Second

// Run runs tasks one after the other until base ends. A function of a source or a store may end the goroutine of Run
// (runtime.Goexit). After a runtime.Goexit, Run may be called again with the same tasks.
func Run(base context.Context, tasks []*Task) {
	for {
		next := slices.MinFunc(tasks, func(a, b *Task) int { return a.at.Compare(b.at) })
		if !timing.Wait(base, time.Until(next.at)) {
			return
		}
		next.at = time.Now().Add(afterGoexit)
		wait := next.step(base)
		next.at = time.Now().Add(wait)
	}
}
