package groupcommit

import (
	"sync/atomic"
	"time"
)

// pace measures how many callers may share a call without delaying one another. A shared call may take twice as long as
// a call of one caller, or maxSharedDelay longer. A shared call is far less work than separate calls. If each input
// takes long, a shared call is slower than calls on several connections, so each caller makes its own call. A nil pace
// sets no limit. The zero value of pace starts with the limit initialLimit.
type pace struct {
	// single is the duration of a call of one caller. perExtraCaller is how much longer a call takes for each
	// further caller. Both fields are medians of recent calls, or 0 before the first measurement. Only
	// recordCall uses single, perExtraCaller and tries.
	single, perExtraCaller recentMedian
	tries                  int          // number of calls of one caller since the limit became one
	limit                  atomic.Int32 // 0 means initialLimit
	wait                   atomic.Int64 // nanoseconds that a caller waits for the running call
}

const (
	// maxSharedDelay is how much longer a call may take when it is shared.
	maxSharedDelay = 10 * time.Millisecond
	// leastWait is the minimum time that a caller waits to share a call. leastWait is longer than an
	// undisturbed call takes, and shorter than most waits for a lock.
	leastWait = 10 * time.Millisecond
	// mostWait is the maximum time that a caller waits, because the running call may itself wait for a lock.
	mostWait = time.Second
	// retryAfterCalls is the number of calls of one caller after which two callers may share a call again.
	retryAfterCalls = 32
	// initialLimit is how many callers share a call before its duration is known. Each concurrent call needs a connection
	// of its own, and a new connection is slow.
	initialLimit = 4
)

// maxCallers returns how many callers may share the next call.
func (p *pace) maxCallers() int {
	if n := p.limit.Load(); n > 0 {
		return int(n)
	}
	return initialLimit
}

// patience returns a channel that receives when a caller has waited long enough for the running call.
func (p *pace) patience() (over <-chan time.Time, stop func()) {
	if p == nil {
		return nil, func() {}
	}
	timer := time.NewTimer(min(max(time.Duration(p.wait.Load()), leastWait), mostWait))
	return timer.C, func() { timer.Stop() }
}

// recordCall records that a call for n callers lasted d. Calls of recordCall must not overlap.
func (p *pace) recordCall(n int, d time.Duration) {
	if p == nil {
		return
	}
	if n == 1 {
		if p.single.value == 0 { // the first call may have waited for a lock
			d = min(d, leastWait)
		}
		p.single.add(d)
		p.wait.Store(int64(4 * p.single.value))
		p.tries++
	} else if alone := p.single.value; alone > 0 {
		p.perExtraCaller.add(max(d-alone, alone/mostTogether) / time.Duration(n-1))
	}
	most := initialLimit
	if more := p.perExtraCaller.value; more > 0 {
		most = min(int((max(p.single.value, maxSharedDelay)+more/2)/more), mostTogether)
	}
	if most < 2 && p.tries >= retryAfterCalls {
		most, p.tries = 2, 0
	}
	p.limit.Store(int32(max(most, 1)))
}

// recentMedian approximates the median of recent durations. An outlier changes the median no more than any other
// duration. If many consecutive durations are above the median, or many are below it, the median changes faster. So a
// median that was measured on new, slow connections is corrected soon.
type recentMedian struct {
	value  time.Duration // 0 before the first measurement
	above  bool          // the last duration was above the median
	streak int           // number of consecutive durations on that side
}

// steadyStreak is the number of consecutive durations above (or below) the median after which the median changes
// faster.
const steadyStreak = 4

// add records one duration.
func (m *recentMedian) add(d time.Duration) {
	if m.value == 0 {
		m.value = d
		return
	}
	if above := d > m.value; above != m.above {
		m.above, m.streak = above, 0
	}
	m.streak++
	step := m.value / 16
	if m.streak > steadyStreak {
		step = m.value / 16 << min(m.streak-steadyStreak, 3)
	}
	if m.above {
		m.value += step + 1
	} else {
		m.value -= step
	}
}
