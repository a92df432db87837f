package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// versions is a machine with an inbox and versions of streams in two lanes.
type versions struct{ *asking }

func newVersions(t *testing.T, change func(*Config)) versions {
	v := versions{newAsking(t, func(c *Config) {
		c.Gap, c.Workers, c.Lanes = time.Minute, 1, Partition
		if change != nil {
			change(c)
		}
	})}
	for _, lane := range []string{"a", "b"} {
		step[Action](v.asking, 0, Given{Lane: source.Lane{ID: lane, Epoch: 1}})
	}
	return v
}

func version(lane, stream string, n int64) *Item {
	return &Item{Lane: source.Lane{ID: lane, Epoch: 1}, Identity: fmt.Sprint(stream, n), Size: 100, Version: &Version{Stream: stream, Number: n}}
}

// currentFlight returns the current batch.
func (v versions) currentFlight() *Flight {
	v.t.Helper()
	if len(v.flights) != 1 {
		v.t.Fatalf("%d flights are open", len(v.flights))
	}
	f := v.flights[0]
	v.flights = nil
	return f
}

// flies passes answers of the store to a batch, lets the first handlers succeed, as many as the parameter done says,
// and returns the commit of the batch.
func (v versions) flies(f *Flight, done int, kinds ...store.VerdictKind) Commit {
	v.t.Helper()
	verdicts := make([]store.Verdict, len(kinds))
	for i, k := range kinds {
		verdicts[i].Kind = k
	}
	commits := step[Commit](v.asking, 0, Marked{Flight: f, Verdicts: verdicts})
	if len(commits) == 0 {
		commits = step[Commit](v.asking, 0, Ran{Flight: f, Done: done})
	}
	if len(commits) != 1 {
		v.t.Fatalf("%d commits", len(commits))
	}
	return commits[0]
}

func (v versions) lands(f *Flight) {
	step[Action](v.asking, 0, Ended{Flight: f, Outcome: store.Committed, Culprit: -1})
}

func TestAVersionBeforeItsTurn(t *testing.T) {
	t.Run("B9_rides_in_the_next_flight_as_one_that_waits_and_is_charged_with_nothing", func(t *testing.T) {
		v := newVersions(t, nil)
		it := version("a", "s", 2)
		step[Action](v.asking, 0, Fetched{Items: []*Item{it}})
		f := v.currentFlight()
		if c := v.flies(f, 0, store.Gap); len(c.Trim) != 1 || len(c.Rows) != 0 {
			t.Errorf("%+v", c)
		}
		v.lands(f)
		f = v.currentFlight()
		c := v.flies(f, 0, store.Fresh)
		if len(c.Rows) != 1 || c.Rows[0].As != AsBlocked || c.Rows[0].After != time.Minute || c.Rows[0].Attempts != 0 || c.Rows[0].Reason != semel.ReasonGap {
			t.Errorf("%+v", c)
		}
		v.lands(f)
		if n := v.m.Counts(); n.Waiting != 1 || n.Retried != 0 {
			t.Errorf("%+v", n)
		}
	})
	t.Run("B9_asks_once_more_where_its_stream_has_moved_and_only_there", func(t *testing.T) {
		v := newVersions(t, nil)
		step[Action](v.asking, 0, Fetched{Items: []*Item{version("a", "s", 2), version("a", "s", 1), version("a", "z", 2)}})
		first := v.currentFlight()
		v.flies(first, 1, store.Gap, store.Fresh, store.Gap)
		v.lands(first)
		second := v.currentFlight()
		if len(second.Entries) != 2 || second.Entries[0].As != AsApplied || second.Entries[1].As != AsBlocked {
			t.Errorf("%+v", second.Entries)
		}
	})
	t.Run("B9_trap_T55_is_parked_when_it_has_waited_for_as_long_as_it_may", func(t *testing.T) {
		v := newVersions(t, nil)
		it := version("", "s", 2)
		it.Lane, it.Claim = InboxLane(), &Claim{Until: time.Hour, Blocked: true}
		step[Action](v.asking, 0, Timer{})
		step[Action](v.asking, 0, Claimed{Items: []*Item{it}})
		f := v.currentFlight()
		v.flies(f, 0, store.Gap)
		v.lands(f)
		c := v.flies(v.currentFlight(), 0, store.Fresh)
		if len(c.Rows) != 1 || c.Rows[0].As != AsOverdue || c.Rows[0].Reason != semel.ReasonGap || c.Rows[0].Last == nil {
			t.Errorf("%+v", c)
		}
	})
	t.Run("B9_freed_rows_are_claimed_at_once", func(t *testing.T) {
		v := newVersions(t, nil)
		step[Action](v.asking, 0, Timer{})
		step[Action](v.asking, 0, Claimed{})
		step[Action](v.asking, 0, Fetched{Items: []*Item{version("a", "s", 1)}})
		f := v.currentFlight()
		v.flies(f, 1, store.Fresh)
		if asked := step[ClaimRows](v.asking, 0, Ended{Flight: f, Outcome: store.Committed, Culprit: -1, Freed: true}); len(asked) != 1 {
			t.Errorf("%+v", asked)
		}
	})
}

func TestAVersionThatWasPassed(t *testing.T) {
	for name, c := range map[string]struct {
		on    Ending
		taken bool
		as    As
		why   semel.Reason
	}{
		"B4_trap_T54_is_discarded":                           {EndPark, false, AsDiscarded, reasonname.Stale},
		"B4_is_a_conflict_if_another_content_took_its_place": {EndPark, true, AsParked, semel.ReasonConflict},
		"B4_is_discarded_where_the_first_content_stands":     {EndKeepFirst, true, AsDiscarded, reasonname.Stale},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVersions(t, func(config *Config) { config.OnConflict = c.on })
			step[Action](v.asking, 0, Fetched{Items: []*Item{version("a", "s", 1)}})
			f := v.currentFlight()
			if commits := step[Commit](v.asking, 0, Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Stale, Known: c.taken}}}); len(commits) != 1 || len(commits[0].Trim) != 1 {
				t.Fatalf("%+v", commits)
			}
			v.lands(f)
			end := v.flies(v.currentFlight(), 0, store.Fresh)
			if len(end.Rows) != 1 || end.Rows[0].As != c.as || end.Rows[0].Reason != c.why {
				t.Errorf("%+v", end)
			}
		})
	}
}

func TestAVersionThatIsTakenBack(t *testing.T) {
	t.Run("B4_takes_back_those_after_it_in_its_stream_in_any_lane", func(t *testing.T) {
		v := newVersions(t, nil)
		busy := &Item{Lane: source.Lane{ID: "a", Epoch: 1}, Identity: "busy", Size: 100}
		step[Action](v.asking, 0, Fetched{Items: []*Item{busy, version("a", "s", 1), version("b", "s", 2), version("b", "z", 1)}})
		f := v.currentFlight()
		c := v.flies(f, 0, store.Busy, store.Fresh, store.Fresh, store.Fresh)
		if len(c.Trim) != 3 || c.Trim[0] != 1 || c.Trim[1] != 2 || c.Trim[2] != 3 {
			t.Errorf("taken back are %v", c.Trim)
		}
	})
	t.Run("law_8_and_keeps_its_place_in_its_lane", func(t *testing.T) {
		v := newVersions(t, nil)
		busy := &Item{Lane: source.Lane{ID: "a", Epoch: 1}, Identity: "busy", Size: 100}
		step[Action](v.asking, 0, Fetched{Items: []*Item{busy, version("a", "s", 1), version("b", "s", 2), version("b", "z", 1), version("b", "y", 1)}})
		c := v.flies(v.currentFlight(), 0, store.Busy, store.Fresh, store.Fresh, store.Fresh, store.Fresh)
		if len(c.Trim) != 4 {
			t.Errorf("taken back are %v", c.Trim)
		}
	})
	t.Run("B4_but_none_that_did_not_count_on_it", func(t *testing.T) {
		v := newVersions(t, nil)
		busy := &Item{Lane: source.Lane{ID: "a", Epoch: 1}, Identity: "busy", Size: 100}
		step[Action](v.asking, 0, Fetched{Items: []*Item{busy, version("a", "s", 6), version("b", "s", 1), version("b", "z", 1)}})
		f := v.currentFlight()
		f.Entries[1].As, f.Entries[1].Item.markAs = AsBlocked, AsBlocked
		if c := v.flies(f, 2, store.Busy, store.Fresh, store.Fresh, store.Fresh); len(c.Trim) != 1 {
			t.Errorf("taken back are %v", c.Trim)
		}
	})
	t.Run("B4_trap_T54_and_one_that_it_had_passed_asks_again", func(t *testing.T) {
		v := newVersions(t, nil)
		twin := version("b", "s", 1)
		twin.Identity = "twin"
		step[Action](v.asking, 0, Fetched{Items: []*Item{version("a", "s", 1), twin}})
		f := v.currentFlight()
		if c := v.flies(f, 0, store.Fresh, store.Stale); len(c.Trim) != 2 {
			t.Errorf("taken back are %v", c.Trim)
		}
		v.lands(f)
		for _, en := range v.currentFlight().Entries {
			if en.As != AsApplied {
				t.Errorf("%s is marked as %d, and neither has taken effect", en.Item.Identity, en.As)
			}
		}
	})
	t.Run("B4_also_what_rides_without_a_handler", func(t *testing.T) {
		v := newVersions(t, nil)
		step[Action](v.asking, 0, Fetched{Items: []*Item{version("a", "s", 1), version("b", "s", 2)}})
		f := v.currentFlight()
		f.Entries[1].As = AsDiscarded
		f.Entries[1].Item.markAs = AsDiscarded
		c := v.flies(f, 0, store.Fresh, store.Fresh)
		if len(c.Trim) != 2 {
			t.Errorf("taken back are %v, rows %+v", c.Trim, c.Rows)
		}
	})
}
