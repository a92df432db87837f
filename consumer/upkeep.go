package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/timing"
)

// task is periodic maintenance of the store, such as sealing acts or removing old markers. Each
// process of a consumer has its tasks; the store lets one process at a time do the work of each.
type task struct {
	at time.Time
	// do works for a moment and returns when it is to be called again.
	do func(base context.Context) (wait time.Duration)
}

// afterGoexit is the wait after which a task is called again that ended its goroutine.
const afterGoexit = 30 * time.Second

// runTasks runs tasks one after the other until base ends. It may be called again with the same tasks:
// foreign code that a task calls may end the goroutine (runtime.Goexit).
func runTasks(base context.Context, tasks []*task) {
	for {
		next := slices.MinFunc(tasks, func(a, b *task) int { return a.at.Compare(b.at) })
		if !timing.Wait(base, time.Until(next.at)) {
			return
		}
		next.at = time.Now().Add(afterGoexit)
		wait := next.do(base)
		next.at = time.Now().Add(wait)
	}
}

// upkeep returns the tasks of a run.
func (e *engine[Tx]) upkeep() (tasks []*task) {
	if e.reaping != nil {
		tasks = append(tasks, e.reaping.task())
	}
	if sealing := newSealing(e); sealing != nil {
		tasks = append(tasks, sealing.task())
	}
	return tasks
}
