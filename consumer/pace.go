package consumer

import (
	"sync/atomic"
	"time"
)

// pace learns how many may share a call of the store without keeping each other: so many
// as take about twice as long as one alone, or sharesFor longer than it, which nobody
// notices, and which is far less work than as many calls. Where what one of them wants done
// is what takes time, one connection after the other would be slower than many at once; then
// each goes by itself. Nil sets no limit; the zero value begins with two.
type pace struct {
	// alone is how long one takes that shares with nobody, more how much longer a call takes
	// for each further one: medians of late, 0 as long as nothing is known. They, and tries,
	// are of who calls took, one at a time.
	alone, more time.Duration
	tries       int          // by themselves, since the limit was one
	limit       atomic.Int32 // 0: two
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
	triesAgain = 64
)

// most is how many may share the next call.
func (p *pace) most() int {
	if n := p.limit.Load(); n > 0 {
		return int(n)
	}
	return 2
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
		if p.alone == 0 { // the first may have met somebody's lock, and says little
			d = min(d, leastWait)
		}
		p.alone = towards(p.alone, d)
		p.wait.Store(int64(4 * p.alone))
		p.tries++
	} else if p.alone > 0 {
		p.more = towards(p.more, max(d-p.alone, p.alone/mostTogether)/time.Duration(n-1))
	}
	most := 2
	if p.more > 0 {
		most = min(int((max(p.alone, sharesFor)+p.more/2)/p.more), mostTogether)
	}
	if most < 2 && p.tries >= triesAgain {
		most, p.tries = 2, 0
	}
	p.limit.Store(int32(max(most, 1)))
}

// towards moves what is near the median of times a step nearer to it, so that one that
// took very long says no more than another.
func towards(median, d time.Duration) time.Duration {
	switch {
	case median == 0:
		return d
	case d > median:
		return median + median/16 + 1
	}
	return median - median/16
}
