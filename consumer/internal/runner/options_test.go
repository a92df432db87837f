package runner

import (
	"testing"
	"time"
)

func TestTheTimeoutOfACommitDependsOnQueuedStatements(t *testing.T) {
	t.Run("trap_T82_a_commit_has_the_time_of_all_that_was_queued_and_no_overflow", func(t *testing.T) {
		c := Timeouts{time.Hour, time.Minute}
		for n, want := range map[int]time.Duration{0: time.Minute, 3: 3*time.Hour + time.Minute, 1 << 40: longestCommit + time.Minute} {
			if got := c.CommitWithin(queuedStatements(queuing(n))); got != want {
				t.Errorf("with %d statements a commit may take %s, want %s", n, got, want)
			}
		}
	})
}

// queuing is a batch with a number of queued statements.
type queuing int

// Queued implements admin.QueuedStatements.
func (q queuing) Queued() int { return int(q) }

// OnCallback implements admin.QueuedStatements.
func (queuing) OnCallback(func(int) func()) {}
