package machine

import "testing"

// skipping is a machine whose store is down and that has a message to skip.
func skipping(t *testing.T) (*Machine, Lane) {
	t.Helper()
	c := testConfig()
	c.OnForeign = ThenSkip
	m := New(c)
	lane := Lane{ID: "a", Epoch: 1}
	m.Step(Given{lane}, 0)
	all := items(2, "a")
	all[1].Refused, all[1].Foreign = "foreign", true
	flights := opening(m.Step(Fetched{Items: all[:1]}, 0))
	m.Step(Marked{Flight: flights[0], Class: Down, Err: errTest}, 0)
	m.Step(Fetched{Items: all[1:]}, 0)
	if !m.store.down || len(m.skipped) != 1 {
		t.Fatalf("the store is down: %t, %d messages are to be skipped", m.store.down, len(m.skipped))
	}
	return m, lane
}

func TestWhatIsSkippedOfALaneThatGoes(t *testing.T) {
	t.Run("case_10_it_is_neither_settled_nor_counted_once_the_lane_is_revoked_or_lost", func(t *testing.T) {
		for name, goes := range map[string]func(Lane) Event{
			"revoked": func(l Lane) Event { return Revoking{l} },
			"lost":    func(l Lane) Event { return Lost{l} },
		} {
			m, lane := skipping(t)
			m.Step(goes(lane), 0)
			m.up()
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
