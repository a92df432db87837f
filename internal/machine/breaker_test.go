package machine

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestTheInboxWhileTheBreakerIsOpen(t *testing.T) {
	t.Run("D3_C19_a_run_does_not_end_idle_on_what_the_inbox_said_before_a_row_was_due", func(t *testing.T) {
		a := newAsking(t, func(c *Config) {
			c.BreakerThreshold, c.MaxInMemoryWait, c.IdleExit, c.Poll = 1, 100*time.Millisecond, 300*time.Millisecond, time.Hour
		})
		step[Action](a, 0, Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		step[Action](a, 0, a.newClaimed(1, time.Minute))
		f := a.flights[0]
		a.flights = nil
		step[Action](a, 0, Claimed{}) // no row is due
		step[Action](a, 0, Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}})
		step[Action](a, 0, Ran{Flight: f, Failed: true, Failure: Failure{Class: store.ClassRetry, Decision: semel.DecidePermanent, Err: errTest}})
		step[Action](a, 0, Ended{Flight: f, Outcome: store.NotCommitted, Culprit: -1})
		a.commit() // the row is due in 100 ms, and the next attempt of the breaker in a second
		if asked := step[ClaimRows](a, 100*time.Millisecond, Timer{}); len(asked) != 0 {
			t.Fatal("the inbox is asked before the next try")
		}
		if ends := len(step[CancelFetch](a, 300*time.Millisecond, Timer{})) + len(step[Done](a, 0, Fetched{})); ends != 0 {
			t.Fatal("the run ends idle although a row of its own is due")
		}
		if asked := step[ClaimRows](a, 600*time.Millisecond, Timer{}); len(asked) != 1 {
			t.Fatalf("the inbox is asked %d times when the next try is due", len(asked))
		}
		step[Action](a, 0, a.newClaimed(1, time.Minute))
		a.commit()
		step[Action](a, 0, Claimed{})
		step[Action](a, 300*time.Millisecond, Timer{})
		if done := step[Done](a, 5*time.Millisecond, Fetched{}); len(done) != 1 || !done[0].Idle {
			t.Errorf("%+v", done)
		}
	})
}
