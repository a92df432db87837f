package machine

import (
	"testing"
	"time"

	"github.com/semel-go/semel/contract"
)

// fail ends the flight that is open with the failure of its only handler.
func (a *asking) fail() {
	f := a.flights[0]
	a.flights = a.flights[1:]
	step[Action](a, 0, Marked{Flight: f, Verdicts: []contract.Verdict{{Kind: contract.Fresh}}})
	step[Action](a, 0, Ran{Flight: f, Failed: true, Failure: Failure{Class: contract.ClassRetry, Err: errTest}})
	step[Action](a, 0, Ended{Flight: f, Outcome: contract.NotCommitted, Culprit: -1})
}

func TestOneMessageIsTriedAtATime(t *testing.T) {
	// oneFailed has two claims that may not be tried, after the failure of a third.
	oneFailed := func(t *testing.T) *asking {
		a := newAsking(t, func(c *Config) {
			c.Lanes, c.Most, c.Receive, c.TrialAfter, c.RetryCost, c.Poll = NoOrder, 2, true, 1, 10*time.Second, time.Hour
		})
		step[Action](a, 0, Given{Lane: contract.Lane{ID: "a", Epoch: 1}})
		for range 2 {
			step[Action](a, 0, a.claimed(1, time.Minute))
		}
		a.fail()
		a.commit() // what is written down of it
		return a
	}
	t.Run("C6_after_a_failure_no_sooner_than_a_retry_costs", func(t *testing.T) {
		a := oneFailed(t)
		if n := len(step[Begin](a, 10*time.Second-1, Timer{})); n != 0 {
			t.Errorf("%d flights begin", n)
		}
		if n := len(step[Begin](a, 1, Timer{})); n != 1 {
			t.Errorf("%d flights begin", n)
		}
	})
	t.Run("C6_what_is_received_does_not_wait_behind_what_may_not_be_tried", func(t *testing.T) {
		a := oneFailed(t)
		if n := len(step[Begin](a, 0, Fetched{Items: items(1, "a")})); n != 1 {
			t.Errorf("%d flights begin", n)
		}
	})
	t.Run("C6_nothing_more_is_claimed_while_one_waits_to_be_tried", func(t *testing.T) {
		a := oneFailed(t)
		a.asked = ClaimRows{}
		step[Action](a, 0, Due{})
		if n := a.asked.Messages; n != 0 {
			t.Errorf("%d are claimed", n)
		}
		step[Action](a, 10*time.Second, Timer{})
		a.fail()
		a.commit()
		if n := a.asked.Messages; n != 1 {
			t.Errorf("%d are claimed", n)
		}
	})
}
