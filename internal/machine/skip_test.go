package machine

import (
	"testing"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// skipping returns a machine whose store is down, and which has a message that the filter excludes.
func skipping(t *testing.T) (*Machine, source.Lane) {
	t.Helper()
	c := testConfig()
	c.OnFiltered = EndSkip
	m := New(c)
	lane := source.Lane{ID: "a", Epoch: 1}
	m.Step(Given{Lane: lane}, 0)
	all := items(2, "a")
	all[1].Refused = &Refusal{Reason: "foreign", Foreign: true}
	flights := opening(m.Step(Fetched{Items: all[:1]}, 0))
	m.Step(Marked{Flight: flights[0], Class: store.ClassDown, Err: errTest}, 0)
	m.Step(Fetched{Items: all[1:]}, 0)
	if !m.store.down || len(m.skipped) != 1 {
		t.Fatalf("the store is down: %t, %d messages are to be skipped", m.store.down, len(m.skipped))
	}
	return m, lane
}

func TestSkippedMessagesOfALostLane(t *testing.T) {
	t.Run("case_10_it_is_neither_settled_nor_counted_once_the_lane_is_revoked_or_lost", func(t *testing.T) {
		for name, goes := range map[string]func(source.Lane) Event{
			"revoked": func(l source.Lane) Event { return Revoking{l} },
			"lost":    func(l source.Lane) Event { return Lost{l} },
		} {
			m, lane := skipping(t)
			m.Step(goes(lane), 0)
			m.endOutage()
			for _, a := range m.Step(Timer{}, 0) {
				if s, ok := a.(*Settle); ok {
					t.Errorf("%s: %d messages are settled", name, len(s.Items))
				}
			}
			if n := m.Counts().Skipped; n != 0 || m.live.count != 0 {
				t.Errorf("%s: %d messages are counted as skipped, %d are held", name, n, m.live.count)
			}
		}
	})
}

func TestSkippedMessagesWhileTheStoreIsDown(t *testing.T) {
	settled := func(actions []Action) (n int) {
		for _, a := range actions {
			if s, ok := a.(*Settle); ok {
				n += len(s.Items)
			}
		}
		return n
	}
	foreign := func(lane string) *Item {
		it := items(1, lane)[0]
		it.Identity, it.Refused = "other", &Refusal{Reason: "foreign", Foreign: true}
		return it
	}
	t.Run("law_13_it_waits_also_when_the_lane_of_another_goes", func(t *testing.T) {
		m, _ := skipping(t)
		m.Step(Given{Lane: source.Lane{ID: "b", Epoch: 1}}, 0)
		if m.Step(Fetched{Items: []*Item{foreign("b")}}, 0); len(m.skipped) != 2 {
			t.Fatalf("%d messages wait, and two should", len(m.skipped))
		}
		if n := settled(m.Step(Lost{source.Lane{ID: "b", Epoch: 1}}, 0)); n != 0 || len(m.skipped) != 1 {
			t.Errorf("%d messages are settled while the store is down, and %d wait", n, len(m.skipped))
		}
	})
	t.Run("law_13_it_is_settled_where_only_a_handler_is_left_that_does_not_end", func(t *testing.T) {
		c := testConfig()
		c.OnFiltered, c.Workers = EndSkip, 2
		m := New(c)
		m.Step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
		m.Step(Given{Lane: source.Lane{ID: "b", Epoch: 1}}, 0)
		flights := opening(m.Step(Fetched{Items: append(items(1, "a"), items(1, "b")...)}, 0))
		m.Step(Marked{Flight: flights[0], Verdicts: []store.Verdict{{Kind: store.Fresh}}}, 0)
		m.Step(Stuck{Flight: flights[0], Item: flights[0].Entries[0].Item}, 0)
		m.Step(Marked{Flight: flights[1], Class: store.ClassDown, Err: errTest}, 0)
		m.Step(Lost{source.Lane{ID: "b", Epoch: 1}}, 0)
		if n := settled(m.Step(Fetched{Items: []*Item{foreign("a")}}, 0)); n != 1 || !m.store.down {
			t.Errorf("%d messages are settled, and nothing asks whether the store is back (down: %t)", n, m.store.down)
		}
	})
	t.Run("C16_law_11_it_waits_for_no_dead_letter_nor_for_what_stands_behind_one", func(t *testing.T) {
		c := testConfig()
		c.OnFiltered, c.OnBadIdentity, c.Lanes = EndSkip, EndDeadLetter, Partition
		m := New(c)
		for _, id := range []string{"a", "b", "c"} {
			m.Step(Given{Lane: source.Lane{ID: id, Epoch: 1}}, 0)
		}
		flights := opening(m.Step(Fetched{Items: items(1, "b")}, 0))
		m.Step(Marked{Flight: flights[0], Class: store.ClassDown, Err: errTest}, 0)
		m.Step(Lost{source.Lane{ID: "b", Epoch: 1}}, 0)
		lined := items(2, "a")
		lined[0].Refused = &Refusal{Reason: "size"}
		var letter *Settle
		for _, a := range m.Step(Fetched{Items: append(lined, foreign("c"))}, 0) {
			if s, ok := a.(*Settle); ok {
				letter = s
			}
		}
		if letter == nil || len(letter.Items) != 2 || m.Counts().Skipped != 1 || !m.store.down {
			t.Fatalf("%+v is settled, %d messages are skipped, the store is down: %t", letter, m.Counts().Skipped, m.store.down)
		}
		m.Step(Settled{Settle: letter}, 0)
		if n := settled(m.Step(Fetched{Items: []*Item{foreign("c")}}, 0)); n != 0 {
			t.Errorf("%d messages are settled, and what has its dead letter asks whether the store is back", n)
		}
	})
}
