package machine

import "time"

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

// known reports the end of the wait that ReportNewer reported for an item.
func (m *Machine) known(it *Item) {
	if it.newer {
		it.newer = false
		m.toldNewer--
		m.do(Report{Kind: ReportNewerEnds, Item: it})
	}
}

// jitter returns a random delay of up to first, doubled n times, at most most ("full jitter": M. Brooker,
// Exponential Backoff And Jitter, 2015). It is never 0, so that there are no busy loops.
func (m *Machine) jitter(first, most time.Duration, n int) time.Duration {
	upper := first << min(n, 30)
	if upper > most || upper < first {
		upper = most
	}
	return 1 + time.Duration(m.random.Int64N(int64(max(upper, 1))))
}
