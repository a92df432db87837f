package engine

import (
	"testing"
	"time"

	"github.com/semel-go/semel/consumer/internal/runner"
)

func TestTheTimeOutsOfATransactionFitIntoOneAnother(t *testing.T) {
	t.Run("law_13_a_wait_for_a_turn_or_a_lock_ends_before_it_looks_like_an_outage_or_the_messages_fault", func(t *testing.T) {
		for _, config := range []runner.Timeouts{{Timeout: 200 * time.Millisecond, CommitTimeout: time.Second}, {Timeout: time.Hour, CommitTimeout: time.Minute}} {
			c := Config{Timeouts: config}
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
}
