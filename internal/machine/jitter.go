package machine

import "time"

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

// known reports that an item no longer waits because of a newer release, if ReportNewer was made for it.
func (m *Machine) known(it *Item) {
	if it.newer {
		it.newer = false
		m.toldNewer--
		m.do(Report{Kind: ReportNewerEnds, Item: it})
	}
}

// jitter returns a random delay. The upper limit of the delay is the duration first, doubled n times, but not more than
// the parameter limit ("full jitter": M. Brooker, Exponential Backoff And Jitter, 2015). The result is never 0, because
// a delay of 0 would cause busy loops.
func (m *Machine) jitter(first, limit time.Duration, n int) time.Duration {
	upper := first << min(n, 30)
	if upper > limit || upper < first {
		upper = limit
	}
	return 1 + time.Duration(m.random.Int64N(int64(max(upper, 1))))
}
