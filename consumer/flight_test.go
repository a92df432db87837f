package consumer

import (
	"testing"
	"time"
)

func TestTheTimeOutsOfATransactionFitIntoOneAnother(t *testing.T) {
	t.Run("law_13_a_wait_for_a_turn_or_a_lock_ends_before_it_looks_like_an_outage_or_the_messages_fault", func(t *testing.T) {
		for _, config := range []Config{{Timeout: 200 * time.Millisecond, CommitTimeout: time.Second}, {Timeout: time.Hour, CommitTimeout: time.Minute}} {
			c := settings{Config: config}
			o := c.txOptions(true)
			if o.Turn <= 0 || o.Turn >= c.CommitTimeout {
				t.Errorf("a turn is waited for %s, and Begin has %s", o.Turn, c.CommitTimeout)
			}
			if o.EffectLock <= 0 || o.EffectLock >= o.Statement || o.Statement != c.Timeout {
				t.Errorf("a lock is waited for %s by a statement that has %s", o.EffectLock, o.Statement)
			}
			if o.Idle <= c.Timeout {
				t.Errorf("the server ends an idle transaction after %s, and its handler has %s", o.Idle, c.Timeout)
			}
		}
	})
	t.Run("trap_T82_a_commit_has_the_time_of_all_that_was_queued_and_no_overflow", func(t *testing.T) {
		c := settings{Config: Config{Timeout: time.Hour, CommitTimeout: time.Minute}}
		for n, want := range map[int]time.Duration{0: time.Minute, 3: 3*time.Hour + time.Minute, 1 << 40: longestCommit + time.Minute} {
			if got := c.commitTimeout(queuedIn(queuing(n))); got != want {
				t.Errorf("with %d statements a commit may take %s, want %s", n, got, want)
			}
		}
	})
}

// queuing is a batch with so many statements that wait for the commit.
type queuing int

// Queued implements admin.QueuedStatements.
func (q queuing) Queued() int { return int(q) }

// OnCallback implements admin.QueuedStatements.
func (queuing) OnCallback(func(int) func()) {}
