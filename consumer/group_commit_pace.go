package consumer

import (
	"sync/atomic"
	"time"
)

// pace learns how many may share a call of the store without keeping each other: so many
// as take about twice as long as one alone, or sharesFor longer than it, which nobody
// notices, and which is far less work than as many calls. Where what one of them wants done
// is what takes time, one connection after the other would be slower than many at once; then
// each goes by itself. Nil sets no limit; the zero value begins with fewAtFirst.
type pace struct {
	// alone is how long one takes that shares with nobody, more how much longer a call takes
	// for each further one: medians of late, 0 as long as nothing is known. They, and tries,
	// are of who calls took, one at a time.
	alone, more lateMedian
	tries       int          // by themselves, since the limit was one
	limit       atomic.Int32 // 0: fewAtFirst
	wait        atomic.Int64 // nanoseconds that one waits for what is under way
}

const (
	// sharesFor is how much longer a call may take because it is shared.
	sharesFor = 10 * time.Millisecond
	// leastWait is how long one waits at least to share: longer than calls take that nothing
	// keeps, and short beside one that waits for somebody's lock.
	leastWait = 10 * time.Millisecond
	// mostWait is how long one waits at most: somebody's lock may keep what is under way.
	mostWait = time.Second
	// triesAgain is after how many that shared with nobody two are let try again.
	triesAgain = 32
	// fewAtFirst is how many share a call before anything is known of them: each further
	// call at once is a further connection, which costs most when it is new.
	fewAtFirst = 4
)

// most is how many may share the next call.
func (p *pace) most() int {
	if n := p.limit.Load(); n > 0 {
		return int(n)
	}
	return fewAtFirst
}

// patience ends when one has waited long enough for what is under way.
func (p *pace) patience() (over <-chan time.Time, stop func()) {
	if p == nil {
		return nil, func() {}
	}
	timer := time.NewTimer(min(max(time.Duration(p.wait.Load()), leastWait), mostWait))
	return timer.C, func() { timer.Stop() }
}

// took learns that n took so long together. It is called one at a time.
func (p *pace) took(n int, d time.Duration) {
	if p == nil {
		return
	}
	if n == 1 {
		if p.alone.of == 0 { // the first may have met somebody's lock, and says little
			d = min(d, leastWait)
		}
		p.alone.took(d)
		p.wait.Store(int64(4 * p.alone.of))
		p.tries++
	} else if alone := p.alone.of; alone > 0 {
		p.more.took(max(d-alone, alone/mostTogether) / time.Duration(n-1))
	}
	most := fewAtFirst
	if more := p.more.of; more > 0 {
		most = min(int((max(p.alone.of, sharesFor)+more/2)/more), mostTogether)
	}
	if most < 2 && p.tries >= triesAgain {
		most, p.tries = 2, 0
	}
	p.limit.Store(int32(max(most, 1)))
}

// lateMedian is near the median of the times of late. One that took very long moves it no
// further than another does. Where many in a row lie on the same side it moves faster: what
// was learned on connections that were new, on which everything takes long, says nothing of
// them later.
type lateMedian struct {
	of    time.Duration // 0: nothing is known
	above bool          // the last ones were
	row   int           // how many of the last were on the side of the last
}

// surely is how many in a row say that the median is elsewhere.
const surely = 4

// took learns one.
func (m *lateMedian) took(d time.Duration) {
	if m.of == 0 {
		m.of = d
		return
	}
	if above := d > m.of; above != m.above {
		m.above, m.row = above, 0
	}
	m.row++
	step := m.of / 16
	if m.row > surely {
		step = m.of / 16 << min(m.row-surely, 3)
	}
	if m.above {
		m.of += step + 1
	} else {
		m.of -= step
	}
}
