package machine

import (
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestTheLoadCountsItemsByState(t *testing.T) {
	t.Run("K4_the_age_is_that_of_the_oldest", func(t *testing.T) {
		c := testConfig()
		c.Most, c.Lanes = 1, Partition
		m := New(c)
		m.Step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
		if l := m.Load(); l.Messages != 0 || l.Lanes != 1 || l.Workers != 1 {
			t.Errorf("before anything came: %+v", l)
		}
		flights := opening(m.Step(Fetched{Items: items(2, "a")}, 5*time.Second))
		m.Step(Fetched{Items: items(3, "a")[2:]}, 7*time.Second)
		if l := m.Load(); l.Messages != 3 || l.Bytes != 3 || l.Since != 5*time.Second || l.Flying != 1 || l.Queued != 2 {
			t.Errorf("three have come: %+v", l)
		}
		for i, since := range []time.Duration{5 * time.Second, 7 * time.Second, 0} {
			f := flights[0]
			m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, 8*time.Second)
			m.Step(Ran{Flight: f, Done: 1}, 8*time.Second)
			actions := m.Step(Ended{Flight: f, Outcome: store.Committed, Culprit: store.NoCulprit}, 8*time.Second)
			flights = opening(actions)
			for _, a := range actions {
				if s, is := a.(*Settle); is {
					m.Step(Settled{Settle: s}, 8*time.Second)
				}
			}
			if l := m.Load(); l.Messages != 2-i || l.Since != since {
				t.Errorf("%d of 3 are settled: %+v", i+1, l)
			}
		}
	})
	t.Run("K4_workers_whose_handlers_go_on_are_counted_until_these_return", func(t *testing.T) {
		m := New(testConfig())
		m.Step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
		f := opening(m.Step(Fetched{Items: items(1, "a")}, 0))[0]
		m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, 0)
		m.Step(Stuck{Flight: f, Item: f.Entries[0].Item}, 0)
		m.Step(Stuck{Flight: f, Item: f.Entries[0].Item}, 0)
		if l := m.Load(); l.Stuck != 1 {
			t.Errorf("one sticks: %+v", l)
		}
		m.Step(Ran{Flight: f, Failed: true, Failure: Failure{Class: store.ClassRetry}}, 0)
		if l := m.Load(); l.Stuck != 0 {
			t.Errorf("none sticks any more: %+v", l)
		}
	})
	t.Run("law_11_what_it_remembers_of_arrivals_does_not_grow", func(t *testing.T) {
		c := testConfig()
		c.Lanes = NoOrder
		m := New(c)
		m.Step(Given{Lane: source.Lane{ID: "a", Epoch: 1}}, 0)
		for i := range 10_000 {
			actions := m.Step(Fetched{Items: items(1, "a")}, Time(i))
			for len(opening(actions)) > 0 {
				f := opening(actions)[0]
				m.Step(Marked{Flight: f, Verdicts: []store.Verdict{{Kind: store.Fresh}}}, Time(i))
				m.Step(Ran{Flight: f, Done: 1}, Time(i))
				actions = m.Step(Ended{Flight: f, Outcome: store.Committed, Culprit: store.NoCulprit}, Time(i))
				for _, a := range actions {
					if s, is := a.(*Settle); is {
						m.Step(Settled{Settle: s}, Time(i))
					}
				}
			}
		}
		if cap(m.waves) > 16 || m.Load().Messages != 0 {
			t.Errorf("%d waves stand there, with %d messages", cap(m.waves), m.Load().Messages)
		}
	})
}
