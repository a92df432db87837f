package upkeep

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/internal/worker"
)

func TestUpkeepOutlivesATaskThatEndsItsGoroutine(t *testing.T) {
	t.Run("trap_90_the_task_waits_and_the_others_go_on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			base, stop := context.WithCancel(t.Context())
			ends, works := 0, 0
			tasks := []*Task{
				{step: func(context.Context) time.Duration { ends++; runtime.Goexit(); return 0 }},
				{step: func(context.Context) time.Duration { works++; return 10 * time.Second }},
			}
			var group worker.Group
			group.Keep(func() { Run(base, tasks) })
			<-time.After(5 * time.Minute)
			stop()
			group.Wait()
			if ends < 9 || ends > 11 || works < 29 || works > 31 {
				t.Errorf("in five minutes the task that ends its goroutine was called %d times, the other %d times", ends, works)
			}
		})
	})
}
