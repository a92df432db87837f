package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// asking is a machine with an inbox. The test sees every action of the machine.
type asking struct {
	t   *testing.T
	m   *Machine
	now Time
	// The field flights contains the batches in progress. lastClaimRows is the last ClaimRows.
	flights       []*Flight
	lastClaimRows ClaimRows
}

func newAsking(t *testing.T, change func(*Config)) *asking {
	c := testConfig()
	c.Inbox, c.Wait, c.Poll, c.Most = true, true, time.Second, 10
	if change != nil {
		change(&c)
	}
	return &asking{t: t, m: New(c)}
}

// step returns the actions of one type that an event causes.
func step[A Action](a *asking, after time.Duration, e Event) (found []A) {
	a.t.Helper()
	a.now += after
	for _, action := range a.m.Step(e, a.now) {
		if b, is := action.(Begin); is {
			a.flights = append(a.flights, b.Flight)
		}
		if c, is := action.(ClaimRows); is {
			a.lastClaimRows = c
		}
		if it, is := action.(A); is {
			found = append(found, it)
		}
	}
	return found
}

// newClaimed returns n claimed rows whose claims expire after the duration left.
func (a *asking) newClaimed(n int, left time.Duration) Claimed {
	var e Claimed
	for i := range n {
		e.Items = append(e.Items, &Item{Lane: InboxLane(), Identity: fmt.Sprint("m", a.now, i), Size: 100, Claim: &Claim{Until: a.now + left}})
	}
	return e
}

// commit commits the batches in progress; all handlers succeed.
func (a *asking) commit() {
	for len(a.flights) > 0 {
		f := a.flights[0]
		a.flights = a.flights[1:]
		v := make([]store.Verdict, len(f.Entries))
		for i := range v {
			v[i].Kind = store.Fresh
		}
		for range step[Run](a, 0, Marked{Flight: f, Verdicts: v}) {
			step[Action](a, 0, Ran{Flight: f, Done: len(v)})
		}
		step[Action](a, 0, Ended{Flight: f, Outcome: store.Committed, Culprit: -1})
	}
}

func TestWhenTheInboxIsAsked(t *testing.T) {
	t.Run("D6_at_once_and_then_within_a_poll_while_nothing_is_due", func(t *testing.T) {
		a := newAsking(t, nil)
		if asked := step[ClaimRows](a, 0, Timer{}); len(asked) != 1 || asked[0].Messages != 10 {
			t.Fatalf("%+v", asked)
		}
		if asked := step[ClaimRows](a, time.Hour, Timer{}); len(asked) != 0 {
			t.Errorf("asked beside a question that is open: %+v", asked)
		}
		wakes := step[Wake](a, 0, Claimed{})
		if len(wakes) != 1 || wakes[0].At < a.now+time.Second/2 || wakes[0].At > a.now+time.Second+1 {
			t.Errorf("it wakes at %v, now is %v", wakes, a.now)
		}
		if asked := step[ClaimRows](a, time.Second/2-1, Timer{}); len(asked) != 0 {
			t.Errorf("asked before half a poll: %+v", asked)
		}
		if asked := step[ClaimRows](a, 0, Due{}); len(asked) != 1 {
			t.Errorf("told that something is due it asks %d times", len(asked))
		}
	})
	t.Run("law_13_a_failure_is_told_and_waited_for", func(t *testing.T) {
		a := newAsking(t, nil)
		step[Action](a, 0, Timer{})
		if told := step[Report](a, 0, Claimed{Failed: true, Err: errTest}); len(told) != 1 || told[0].Kind != ReportNotReady || told[0].Part != "inbox" {
			t.Errorf("%+v", told)
		}
		if asked := step[ClaimRows](a, 0, Due{}); len(asked) != 0 {
			t.Error("what is due shortens the pause after a failure")
		}
		step[Action](a, time.Second, Timer{})
		if told := step[Report](a, 0, Claimed{}); len(told) != 1 || told[0].Kind != ReportReady {
			t.Errorf("%+v", told)
		}
	})
	t.Run("law_13_the_pause_after_a_failure_is_short_again_once_the_inbox_has_answered", func(t *testing.T) {
		a := newAsking(t, nil)
		fail := func() time.Duration {
			step[Action](a, 10*time.Second, Timer{})
			return step[Report](a, 0, Claimed{Failed: true, Err: errTest})[0].Wait
		}
		first := a.m.config.BackoffFirst
		for range 6 {
			fail()
		}
		if wait := fail(); wait <= first {
			t.Fatalf("after seven failures the pause is %v", wait)
		}
		step[Action](a, 10*time.Second, Timer{})
		step[Action](a, 0, Claimed{})
		if wait := fail(); wait > first {
			t.Errorf("after an answer the pause is %v, want at most %v", wait, first)
		}
	})
	t.Run("D3_again_for_what_was_given_back_while_it_was_asked", func(t *testing.T) {
		a := newAsking(t, func(c *Config) { c.Workers, c.Most = 1, 4 })
		step[Action](a, 0, Timer{})
		for range 2 { // one row runs, and one row waits
			if asked := step[ClaimRows](a, 0, a.newClaimed(1, time.Minute)); len(asked) != 1 {
				t.Fatalf("%+v", asked)
			}
		}
		if freed := step[Unclaim](a, time.Minute, Timer{}); len(freed) != 1 || len(freed[0].Items) != 1 {
			t.Fatalf("%+v", freed)
		}
		if asked := step[ClaimRows](a, 0, Claimed{}); len(asked) != 1 {
			t.Errorf("the answer of before says that nothing is due, and it asks %d times", len(asked))
		}
	})
	t.Run("case_6_what_this_process_wrote_is_asked_for_at_its_moment", func(t *testing.T) {
		a := newAsking(t, func(c *Config) { c.Poll = time.Minute })
		step[Action](a, 0, Timer{})
		step[Action](a, 0, a.newClaimed(1, time.Hour)) // and the machine has asked for rows again
		f := a.flights[0]
		a.flights = nil
		step[Action](a, 0, Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}})
		step[Action](a, 0, Ran{Flight: f, Failed: true, Failure: Failure{Class: store.ClassRetry, After: 20 * time.Second, Err: errTest}})
		step[Action](a, 0, Ended{Flight: f, Outcome: store.NotCommitted, Culprit: -1})
		if len(a.flights) != 1 || a.flights[0].Entries[0].As != AsWaiting {
			t.Fatalf("%+v", a.flights)
		}
		f, a.flights = a.flights[0], nil
		commits := step[Commit](a, 0, Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}})
		if len(commits) != 1 || len(commits[0].Rows) != 1 || commits[0].Rows[0].After != 20*time.Second || commits[0].Rows[0].Attempts != 1 {
			t.Fatalf("%+v", commits)
		}
		step[Action](a, 0, Ended{Flight: f, Outcome: store.Committed, Culprit: -1})
		step[Action](a, 0, Claimed{})
		if asked := step[ClaimRows](a, 20*time.Second-1, Timer{}); len(asked) != 0 {
			t.Error("it is asked for before its moment")
		}
		if asked := step[ClaimRows](a, 1, Timer{}); len(asked) != 1 {
			t.Error("it is not asked for at its moment")
		}
		if n := a.m.Counts().Claims; n.Claimed != 1 || n.Waiting != 1 {
			t.Errorf("%+v", n)
		}
	})
}

func TestAnInboxThatIsNotToBeAsked(t *testing.T) {
	t.Run("I0_it_is_asked_later_counts_as_neither_empty_nor_down_and_keeps_no_flight_back", func(t *testing.T) {
		a := newAsking(t, func(c *Config) { c.IdleExit, c.OneWriter = time.Second, true })
		if asked := step[ClaimRows](a, 0, Timer{}); len(asked) != 1 {
			t.Fatalf("%+v", asked)
		}
		for range 8 {
			step[Action](a, 0, Claimed{Later: time.Second})
			if asked := step[ClaimRows](a, time.Second-1, Timer{}); len(asked) != 0 {
				t.Error("it is asked before its moment")
			}
			if a.m.nothingDue() {
				t.Error("it counts as empty")
			}
			if asked := step[ClaimRows](a, 1, Timer{}); len(asked) != 1 {
				t.Error("it is not asked at its moment")
			}
		}
		step[Action](a, 0, a.newClaimed(1, time.Minute))
		if begun := step[Begin](a, 0, Claimed{Later: time.Second}); len(begun) != 1 {
			t.Error("what is in memory does not fly")
		}
	})
}

func TestAnInboxIsAskedAgainBeforeARunEnds(t *testing.T) {
	t.Run("trap_T95_where_the_source_has_said_that_more_may_come", func(t *testing.T) {
		a := newAsking(t, func(c *Config) { c.IdleExit = 10 * time.Millisecond })
		step[Action](a, 0, Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		step[Action](a, 0, Claimed{})
		if !a.m.nothingDue() {
			t.Fatal("it is not known to be empty")
		}
		if asked := step[ClaimRows](a, 0, Fetched{More: true}); len(asked) != 1 || a.m.nothingDue() {
			t.Errorf("%+v, and it counts as empty: %v", asked, a.m.nothingDue())
		}
	})
}

func TestAClaimThatFliesAlone(t *testing.T) {
	claims := func(routes ...uint64) (e Claimed) {
		for i, route := range routes {
			e.Items = append(e.Items, &Item{Lane: InboxLane(), Identity: fmt.Sprint("m", i), Route: route, Size: 100, Claim: &Claim{Until: time.Minute}})
		}
		return e
	}
	alone := func(t *testing.T) *asking {
		a := newAsking(t, func(c *Config) { c.ClaimsAlone, c.Workers = true, 4 })
		step[Action](a, 0, Timer{})
		return a
	}
	t.Run("law_11_waits_for_no_other_while_a_worker_has_nothing_to_do", func(t *testing.T) {
		a := alone(t)
		if begun := step[Begin](a, 0, claims(0, 4, 8, 12)); len(begun) != 4 {
			t.Errorf("%d of 4 fly", len(begun))
		}
	})
	t.Run("law_11_keeps_no_delivery_of_its_key_from_being_received", func(t *testing.T) {
		a := newAsking(t, func(c *Config) { c.ClaimsAlone, c.Workers, c.Lanes = true, 4, Key })
		step[Action](a, 0, Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		step[Action](a, 0, Timer{})
		delivered := items(1, "a")
		delivered[0].Route = 7
		if begun := len(step[Begin](a, 0, claims(7))) + len(step[Begin](a, 0, Fetched{Items: delivered})); begun != 2 {
			t.Errorf("%d of 2 fly", begun)
		}
	})
	t.Run("K4_waits_for_one_of_its_key", func(t *testing.T) {
		a := alone(t)
		if begun := step[Begin](a, 0, claims(7, 7, 7)); len(begun) != 1 {
			t.Errorf("%d of one key fly", len(begun))
		}
		a.commit()
		if n, left := a.m.Counts().Claims.Applied, len(a.m.claims.lines); n != 3 || left != 0 {
			t.Errorf("%d are applied in the end, and %d lines are left", n, left)
		}
	})
}

func TestADeliveryThatFliesAlone(t *testing.T) {
	delivered := func(t *testing.T, lanes Lanes, routes ...uint64) (*asking, int) {
		a := newAsking(t, func(c *Config) { c.Alone, c.ClaimsAlone, c.Workers, c.Lanes = true, true, 4, lanes })
		step[Action](a, 0, Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		step[Action](a, 0, Timer{})
		all := items(len(routes), "a")
		for i := range all {
			all[i].Route = routes[i]
		}
		return a, len(step[Begin](a, 0, Fetched{Items: all}))
	}
	t.Run("law_11_waits_for_no_other_while_a_worker_has_nothing_to_do", func(t *testing.T) {
		for _, lanes := range []Lanes{NoOrder, Key} {
			if _, begun := delivered(t, lanes, 0, 4, 8, 12, 16); begun != 4 {
				t.Errorf("%d fly at 4 workers", begun)
			}
		}
	})
	t.Run("law_8_waits_for_the_one_before_it_in_its_line", func(t *testing.T) {
		for _, lanes := range []Lanes{Key, Partition} {
			if a, begun := delivered(t, lanes, 7, 7, 7); begun != 1 {
				t.Errorf("%d of one line fly", begun)
			} else if a.commit(); a.m.Counts().Applied != 3 {
				t.Errorf("%+v", a.m.Counts())
			}
		}
	})
}

func TestHowMuchIsClaimedAhead(t *testing.T) {
	t.Run("law_11_more_while_all_are_begun_in_time_and_half_when_one_was_not", func(t *testing.T) {
		a := newAsking(t, nil)
		asked := step[ClaimRows](a, 0, Timer{})
		for _, want := range []int{20, 40} {
			step[Action](a, 0, a.newClaimed(asked[0].Messages, time.Minute))
			for range 10 {
				a.commit()
			}
			step[Action](a, 0, Claimed{})
			if asked = step[ClaimRows](a, time.Minute, Timer{}); len(asked) != 1 || asked[0].Messages != want {
				t.Fatalf("%+v, want %d", asked, want)
			}
		}
		step[Action](a, 0, a.newClaimed(40, time.Minute)) // ten rows run, and their batch does not end
		freed := step[Unclaim](a, time.Minute, Timer{})
		if len(freed) != 1 || len(freed[0].Items) != 30 {
			t.Fatalf("%d are given back", len(freed))
		}
		if n := a.m.Counts().Claims; n.Released != 30 {
			t.Errorf("%+v", n)
		}
		if a.m.claims.prefetchLimit >= 40 {
			t.Errorf("%d may be claimed ahead after that", a.m.claims.prefetchLimit)
		}
	})
	t.Run("law_11_a_worker_that_sticks_gets_none", func(t *testing.T) {
		a := newAsking(t, func(c *Config) { c.Workers, c.Most = 2, 1 })
		step[Action](a, 0, Timer{})
		first := a.newClaimed(1, time.Minute)
		begun := step[Begin](a, 0, first)
		f := begun[0].Flight
		step[Action](a, 0, Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}})
		step[Action](a, time.Second, Stuck{Flight: f, Item: f.Entries[0].Item})
		next := a.newClaimed(1, time.Minute)
		next.Items[0].Route = first.Items[0].Route
		if begun := step[Begin](a, 0, next); len(begun) != 1 || begun[0].Flight.Worker == f.Worker {
			t.Errorf("%+v", begun)
		}
	})
	t.Run("case_10_a_stop_gives_back_what_no_flight_has", func(t *testing.T) {
		a := newAsking(t, nil)
		step[Action](a, 0, Timer{})
		step[Action](a, 0, a.newClaimed(15, time.Minute))
		freed := step[Unclaim](a, 0, Stop{})
		if len(freed) != 1 || len(freed[0].Items) != 5 {
			t.Fatalf("%+v", freed)
		}
		if freed := step[Unclaim](a, 0, a.newClaimed(3, time.Minute)); len(freed) != 1 || len(freed[0].Items) != 3 {
			t.Errorf("what comes after the stop: %+v", freed)
		}
	})
	t.Run("law_5_a_claim_that_is_lost_leaves_without_an_attempt", func(t *testing.T) {
		a := newAsking(t, nil)
		step[Action](a, 0, Timer{})
		step[Action](a, 0, a.newClaimed(2, time.Minute))
		f := a.flights[0]
		step[Action](a, 0, Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.ClaimLost}, {Kind: store.Fresh}}})
		step[Action](a, 0, Ran{Flight: f, Done: 1})
		a.flights = nil
		step[Action](a, 0, Ended{Flight: f, Outcome: store.NotCommitted, Class: store.ClassClaimLost, Culprit: -1})
		if len(a.flights) != 1 || len(a.flights[0].Entries) != 2 || a.flights[0].Entries[1].Item.Attempt() != 1 {
			t.Fatalf("%+v", a.flights)
		}
		f = a.flights[0]
		step[Action](a, 0, Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.ClaimLost}, {Kind: store.ClaimLost}}})
		step[Action](a, 0, Ended{Flight: f, Outcome: store.Committed, Culprit: -1})
		if n := a.m.Counts().Claims; n.Lost != 2 || n.Applied != 0 || a.m.live.count != 0 {
			t.Errorf("%+v, %d are held", n, a.m.live.count)
		}
	})
}

func TestAStopWhileTheInboxIsAsked(t *testing.T) {
	t.Run("case_10_gives_back_what_the_answer_brings_and_asks_no_more", func(t *testing.T) {
		a := newAsking(t, nil)
		if asked := step[ClaimRows](a, 0, Timer{}); len(asked) != 1 {
			t.Fatalf("%+v", asked)
		}
		if done := step[Done](a, 0, Stop{}); len(done) != 0 {
			t.Fatalf("the run ends before the answer has come: %+v", done)
		}
		var begun, asked, freed int
		for _, action := range a.m.Step(a.newClaimed(3, time.Minute), a.now) {
			switch action := action.(type) {
			case Begin:
				begun++
			case ClaimRows:
				asked++
			case Unclaim:
				freed += len(action.Items)
			}
		}
		if begun != 0 || asked != 0 || freed != 3 {
			t.Errorf("%d flights begin, %d questions are asked, %d of 3 claims are given back", begun, asked, freed)
		}
		asked += len(step[ClaimRows](a, 0, Due{})) + len(step[ClaimRows](a, time.Hour, Timer{}))
		if asked != 0 {
			t.Errorf("a run that stops asks %d times for more", asked)
		}
	})
}
