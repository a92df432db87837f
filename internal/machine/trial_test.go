package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// fail ends the current batch with a failure of its only handler.
func (a *asking) fail() {
	f := a.flights[0]
	a.flights = a.flights[1:]
	step[Action](a, 0, Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}})
	step[Action](a, 0, Ran{Flight: f, Failed: true, Failure: Failure{Class: store.ClassRetry, Err: errTest}})
	step[Action](a, 0, Ended{Flight: f, Outcome: store.NotCommitted, Culprit: -1})
}

func TestOneMessageIsTriedAtATime(t *testing.T) {
	// oneFailed returns a machine with two claimed rows that may not run yet, because a third row has failed.
	oneFailed := func(t *testing.T) *asking {
		a := newAsking(t, func(c *Config) {
			c.Lanes, c.Most, c.Receive, c.TrialAfter, c.RetryCost, c.Poll = NoOrder, 2, true, 1, 10*time.Second, time.Hour
		})
		step[Action](a, 0, Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		for range 2 {
			step[Action](a, 0, a.newClaimed(1, time.Minute))
		}
		a.fail()
		a.commit() // records the failure
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
		a.lastClaimRows = ClaimRows{}
		step[Action](a, 0, Due{})
		if n := a.lastClaimRows.Messages; n != 0 {
			t.Errorf("%d are claimed", n)
		}
		step[Action](a, 10*time.Second, Timer{})
		a.fail()
		a.commit()
		if n := a.lastClaimRows.Messages; n != 1 {
			t.Errorf("%d are claimed", n)
		}
	})
	t.Run("C6_D3_what_was_rolled_back_and_waits_to_be_tried_is_given_back_in_its_time", func(t *testing.T) {
		a := newAsking(t, func(c *Config) {
			c.Lanes, c.Most, c.TrialAfter, c.RetryCost, c.Poll = NoOrder, 4, 1, 10*time.Hour, time.Hour
		})
		step[Action](a, 0, a.newClaimed(4, time.Minute))
		f := a.flights[0]
		a.flights = nil
		step[Action](a, 0, Marked{Flight: f, Verdicts: slices.Repeat([]store.Verdict{{Kind: store.Fresh}}, 4)})
		step[Action](a, 50*time.Second, Ran{Flight: f, Failed: true, Failure: Failure{Class: store.ClassRetry, Err: errTest}})
		step[Action](a, 0, Ended{Flight: f, Outcome: store.NotCommitted, Culprit: -1, Until: a.now + time.Minute})
		a.commit() // records the first failure
		if n := len(step[Unclaim](a, time.Minute-1, Timer{})); n != 0 {
			t.Errorf("claims are given back early")
		}
		if freed := step[Unclaim](a, 1, Timer{}); len(freed) != 1 || len(freed[0].Items) != 3 {
			t.Errorf("%+v", freed)
		}
	})
	t.Run("law_11_a_run_does_not_end_idle_while_one_waits_to_be_tried", func(t *testing.T) {
		c := testConfig()
		c.IdleExit, c.TrialAfter, c.InitialDelay, c.MaxDelay, c.RetryCost, c.RetrySaved = time.Second, 1, time.Millisecond, time.Millisecond, 10*time.Minute, 20*time.Minute
		c.BackoffFirst, c.BackoffMost = 5*time.Minute, 5*time.Minute
		lanes, fetches, runs := []string{"a", "b"}, 0, 0
		done := anHour(c, lanes, func(a Action) Event {
			switch a := a.(type) {
			case Fetch:
				if fetches++; fetches <= len(lanes) {
					return Fetched{Items: items(1, lanes[fetches-1])}
				}
			case CancelFetch:
				return Fetched{}
			case Begin: // a newer release has written the markers of the messages in lane a
				m := Marked{Flight: a.Flight}
				for _, en := range a.Flight.Entries {
					v := store.Verdict{Kind: store.Fresh}
					if en.Item.Lane.ID == "a" {
						v = store.Verdict{Kind: store.Newer, Was: store.Outcome(9)}
					}
					m.Verdicts = append(m.Verdicts, v)
				}
				return m
			case Run:
				if runs++; runs == 1 {
					return Ran{Flight: a.Flight, Failed: true, Failure: Failure{Class: store.ClassRetry, Err: errTest}}
				}
				return Ran{Flight: a.Flight, Done: 1}
			case Rollback:
				return Ended{Flight: a.Flight, Outcome: store.NotCommitted, Culprit: -1}
			case *Settle:
				return Settled{Settle: a}
			}
			return nil
		})
		if runs != 2 || done == nil || !done.Idle || len(done.Behind) != 1 || done.Behind[0].Lane.ID != "a" {
			t.Errorf("%d runs, %+v", runs, done)
		}
	})
}
