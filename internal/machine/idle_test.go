package machine

import (
	"testing"
	"time"

	"github.com/semel-go/semel/source"
)

// clock calls Step of a machine and records the actions that concern the source.
type clock struct {
	m       *Machine
	now     Time
	wake    Time
	fetches int
	cancels []bool // CancelFetch.Idle of each cancelled Fetch
	done    *Done
}

func newClock(idleExit Time) *clock {
	c := testConfig()
	c.IdleExit = idleExit
	return &clock{m: New(c)}
}

func (c *clock) step(e Event) {
	for _, a := range c.m.Step(e, c.now) {
		switch a := a.(type) {
		case Fetch:
			c.fetches++
		case CancelFetch:
			c.cancels = append(c.cancels, a.Idle)
		case Wake:
			c.wake = a.At
		case Done:
			c.done = &a
		}
	}
}

// until advances the time to the time at, and passes a Timer to the machine at each time that the machine has
// requested.
func (c *clock) until(at Time) {
	for c.wake > c.now && c.wake <= at {
		c.now = c.wake
		c.step(Timer{})
	}
	c.now = at
}

// canceled returns the cancelled fetches since the last call.
func (c *clock) canceled() []bool {
	said := c.cancels
	c.cancels = nil
	return said
}

func only(said []bool, want bool) bool { return len(said) == 1 && said[0] == want }

func TestARunEndsIdle(t *testing.T) {
	t.Run("trap_T95_only_after_the_source_was_asked_also_where_the_fetch_has_an_end_of_its_own", func(t *testing.T) {
		c := newClock(2 * time.Second)
		c.step(Timer{})
		c.until(joining)
		if said := c.canceled(); !only(said, true) {
			t.Fatalf("after %v without a lane the fetch is cancelled as %v", joining, said)
		}
		if c.step(Fetched{}); c.done == nil || !c.done.Idle {
			t.Errorf("%+v", c.done)
		}
	})
	// cancelled returns a machine whose first Fetch was cancelled because the source had not responded. The machine
	// gets the response of the source later than the run could have ended.
	cancelled := func(t *testing.T) *clock {
		c := newClock(90 * time.Second)
		c.step(Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		c.until(95 * time.Second)
		if said := c.canceled(); !only(said, false) {
			t.Fatalf("the first fetch is cancelled as %v", said)
		}
		if c.step(Fetched{}); c.done != nil {
			t.Fatal("the run has ended, and nobody has asked whether the source has more")
		}
		fetches := c.fetches
		c.until(c.now + time.Second)
		if said := c.canceled(); !only(said, true) || c.fetches != fetches+1 {
			t.Fatalf("it fetches %d times more, cancelled as %v", c.fetches-fetches, said)
		}
		return c
	}
	t.Run("trap_T95_not_for_the_answer_to_a_fetch_that_was_cancelled_for_another_reason", func(t *testing.T) {
		c := cancelled(t)
		if c.step(Fetched{}); c.done == nil || !c.done.Idle {
			t.Errorf("%+v", c.done)
		}
	})
	t.Run("trap_T95_not_while_the_source_has_more", func(t *testing.T) {
		c := cancelled(t)
		c.step(Fetched{More: true})
		answered := c.now
		if c.until(answered + 90*time.Second - 1); c.done != nil || len(c.canceled()) > 0 {
			t.Fatal("it does not wait anew")
		}
		c.until(answered + 91*time.Second)
		if said := c.canceled(); !only(said, true) {
			t.Errorf("then the fetch is cancelled as %v", said)
		}
	})
	t.Run("trap_T95_not_on_what_was_said_before_the_store_went_away", func(t *testing.T) {
		c := newClock(2 * time.Second)
		c.step(Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		c.step(Fetched{})
		c.m.goDown(nil, errTest, false)
		c.m.store.until = c.now + time.Minute
		if c.until(c.now + 30*time.Second); c.done != nil {
			t.Fatal("it has ended on an old answer")
		}
		fetches := c.fetches
		c.now += time.Minute
		if c.step(Timer{}); c.fetches != fetches+1 || len(c.canceled()) > 0 {
			t.Error("the source is not asked, or not given the time to say something")
		}
		c.until(c.now + emptyFetch)
		if said := c.canceled(); !only(said, true) {
			t.Errorf("then the fetch is cancelled as %v", said)
		}
	})
	t.Run("law_11_beside_a_source_that_never_waits", func(t *testing.T) {
		c := newClock(2 * time.Second)
		c.step(Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		for answered := 0; c.done == nil && c.now < time.Minute; {
			if answered < c.fetches {
				answered++
				c.step(Fetched{})
				continue
			}
			c.until(c.wake)
		}
		if c.done == nil || !c.done.Idle || c.now < 2*time.Second || c.now > 3*time.Second {
			t.Errorf("%+v after %v", c.done, c.now)
		}
	})
}

func TestAStopThatComesWhileTheSourceIsAskedForMore(t *testing.T) {
	t.Run("case_10_the_source_hears_that_the_run_stops_and_not_ends_idle", func(t *testing.T) {
		c := newClock(2 * time.Second)
		c.step(Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		c.until(3 * time.Second)
		if said := c.canceled(); !only(said, true) {
			t.Fatalf("the fetch is cancelled as %v", said)
		}
		c.step(Stop{})
		if said := c.canceled(); !only(said, false) {
			t.Fatalf("with the stop it is cancelled as %v", said)
		}
		c.step(Stop{})
		if said := c.canceled(); len(said) > 0 {
			t.Errorf("it is cancelled once more, as %v", said)
		}
		if c.step(Fetched{}); c.done == nil || c.done.Idle {
			t.Errorf("%+v", c.done)
		}
	})
}
