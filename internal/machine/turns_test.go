package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// versioned returns a delivery with a version of a stream.
func versioned(id string, number int64) *Item {
	return &Item{Lane: source.Lane{ID: "a", Epoch: 1}, Identity: id, Version: &Version{"s", number}, Size: 1, Before: -1}
}

// answer ends the current batch with the given answers of the store and returns the rows of the batch.
func (a *asking) answer(verdicts ...store.VerdictKind) (rows []Row) {
	a.t.Helper()
	if len(a.flights) != 1 {
		a.t.Fatalf("%d flights are open", len(a.flights))
	}
	f := a.flights[0]
	a.flights = nil
	e := Marked{Flight: f}
	for _, k := range verdicts {
		e.Verdicts = append(e.Verdicts, store.Verdict{Kind: k})
	}
	commits := func(actions []Action) (again []Action) {
		for _, action := range actions {
			switch action := action.(type) {
			case Run:
				again = a.m.Step(Ran{Flight: f, Done: len(action.Fresh)}, a.now)
			case Commit:
				rows = action.Rows
			}
		}
		return again
	}
	commits(commits(a.m.Step(e, a.now)))
	step[Action](a, 0, Ended{Flight: f, Outcome: store.Committed, Culprit: -1})
	return rows
}

func TestVersionsOutOfTheirTurn(t *testing.T) {
	begins := func(t *testing.T) *asking {
		a := newAsking(t, func(c *Config) { c.Gap = time.Minute })
		step[Action](a, 0, Given{Lane: source.Lane{ID: "a", Epoch: 1}})
		return a
	}
	marked := func(t *testing.T, a *asking, as As) {
		t.Helper()
		if len(a.flights) != 1 || a.flights[0].Entries[0].As != as {
			t.Fatalf("%v is open, and it should be marked as %d", a.flights, as)
		}
	}
	t.Run("B9_a_gap_is_blocked_for_as_long_as_it_may_wait", func(t *testing.T) {
		a := begins(t)
		step[Action](a, 0, Fetched{Items: []*Item{versioned("m", 2)}})
		a.answer(store.Gap)
		marked(t, a, AsBlocked)
		if rows := a.answer(store.Fresh); len(rows) != 1 || rows[0].After != time.Minute || rows[0].Reason != semel.ReasonGap || rows[0].Attempts != 0 {
			t.Errorf("%+v", rows)
		}
	})
	t.Run("B9_a_gap_whose_stream_has_moved_in_its_flight_asks_once_more", func(t *testing.T) {
		a := begins(t)
		step[Action](a, 0, Fetched{Items: []*Item{versioned("m", 2), versioned("n", 1)}})
		a.answer(store.Gap, store.Fresh)
		marked(t, a, AsApplied)
	})
	t.Run("B9_trap_T55_one_that_has_waited_for_as_long_as_it_may_asks_when_it_is_parked", func(t *testing.T) {
		a := begins(t)
		e := a.newClaimed(1, time.Minute)
		e.Items[0].Version, e.Items[0].Claim.Blocked = &Version{"s", 2}, true
		step[Action](a, 0, Timer{})
		step[Action](a, 0, e)
		a.answer(store.Gap)
		marked(t, a, AsOverdue)
		if rows := a.answer(store.Fresh); len(rows) != 1 || rows[0].As != AsOverdue || rows[0].Reason != semel.ReasonGap || !errors.Is(rows[0].Last, errGap) {
			t.Errorf("%+v", rows)
		}
	})
	t.Run("B9_one_does_not_run_whose_predecessor_waits_in_its_lane", func(t *testing.T) {
		a := begins(t)
		step[Action](a, 0, Given{Lane: source.Lane{ID: "b", Epoch: 1}})
		follower := versioned("m", 2)
		follower.Lane.ID = "b"
		step[Action](a, 0, Fetched{Items: []*Item{{Lane: source.Lane{ID: "a", Epoch: 1}, Identity: "x", Size: 1, Before: -1}, versioned("n", 1), follower}})
		e := Marked{Flight: a.flights[0], Verdicts: []store.Verdict{{Kind: store.Newer, Was: 9}, {Kind: store.Fresh}, {Kind: store.Fresh}}}
		if commits := step[Commit](a, 0, e); len(commits) != 1 || !slices.Equal(commits[0].Trim, []int{1, 2}) {
			t.Errorf("%+v", commits)
		}
	})
	t.Run("B4_trap_T54_a_version_that_was_passed_is_discarded_and_no_more_suspected", func(t *testing.T) {
		a := begins(t)
		it := versioned("m", 2)
		step[Action](a, 0, Fetched{Items: []*Item{it}})
		it.ensureTrouble().suspicion = suspicion{raised: true, provenLimit: 1, provenFailures: 1, commits: a.m.commits, err: errGap}
		a.answer(store.Stale)
		marked(t, a, AsDiscarded)
		if it.attempts != 0 {
			t.Errorf("it is charged with %d attempts", it.attempts)
		}
	})
}
