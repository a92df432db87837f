package machine

import (
	"slices"
	"testing"

	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// answers passes the given answers of the store to the batch of worker 0, runs no handler, and returns the batch's
// commit.
func (k *keyed) answers(now Time, kinds ...store.VerdictKind) (c Commit) {
	k.t.Helper()
	f := k.flights[0]
	if f == nil || len(f.Entries) != len(kinds) {
		k.t.Fatalf("the flight is %+v", f)
	}
	delete(k.flights, 0)
	verdicts := make([]store.Verdict, len(kinds))
	for i, kind := range kinds {
		verdicts[i].Kind = kind
	}
	for _, a := range k.m.Step(Marked{Flight: f, Verdicts: verdicts}, now) {
		if commit, ok := a.(Commit); ok {
			c = commit
		}
	}
	if c.Flight == nil {
		k.t.Fatal("it does not commit")
	}
	k.step(Ended{Flight: f, Outcome: store.Committed, Culprit: -1}, now)
	return c
}

func newBlocking(t *testing.T) *keyed {
	c := testConfig()
	c.Lanes, c.Workers, c.Block, c.Inbox, c.Wait, c.Poll = Key, 1, true, true, true, c.MaxInMemoryWait
	k := &keyed{t: t, m: New(c), flights: map[int]*Flight{}}
	k.step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
	return k
}

func TestMessagesBehindAnother(t *testing.T) {
	t.Run("case_7_C8_rides_in_the_next_flight_as_a_row", func(t *testing.T) {
		k := newBlocking(t)
		k.fetched(7)
		k.fetched(8)
		if c := k.answers(0, store.Behind); !slices.Equal(c.Trim, []int{0}) || len(c.Rows) != 0 {
			t.Errorf("%+v", c)
		}
		c := k.answers(0, store.Fresh, store.Busy)
		if len(c.Rows) != 1 || c.Rows[0].As != AsBlocked || c.Rows[0].Reason != reasonname.Behind || c.Rows[0].After != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("case_7_law_8_enters_its_line_after_an_earlier_one_of_its_key", func(t *testing.T) {
		m, one, other := New(testConfig()), newLine(true), newLine(true)
		f := &Flight{}
		for _, en := range []struct {
			line *line
			as   As
			kind store.VerdictKind
		}{
			{one, AsBlocked, store.Fresh}, {one, AsApplied, store.Behind}, {one, AsBlocked, store.Fresh}, {one, AsParked, store.Fresh},
			{other, AsWaiting, store.Fresh}, {other, AsApplied, untouched}, {other, AsWaiting, store.Fresh},
			{newLine(false), AsApplied, untouched}, {newLine(true), AsBlocked, store.Fresh},
		} {
			it := &Item{}
			it.line = en.line
			f.Entries = append(f.Entries, Entry{Item: it, As: en.as})
			f.verdicts = append(f.verdicts, store.Verdict{Kind: en.kind})
		}
		if m.keepPlaces(f); !slices.Equal(f.trim, []int{2, 3, 6}) {
			t.Errorf("taken back are %v", f.trim)
		}
	})
}
