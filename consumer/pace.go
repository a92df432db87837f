package consumer

import (
	"sync/atomic"
	"time"
)

// pace learns how many may share a call of the store without keeping each other: so many
// as take at most half as long again as one alone. Where their statements are what takes
// time, one connection after the other would be slower than many at once, so each goes by
// itself. The zero value begins with two; nil sets no limit.
type pace struct {
	// alone is how long one took that shared with nobody, of late; 0: not known.
	alone time.Duration // of who calls took, one at a time
	tries int           // since the limit was one; of who calls took
	limit atomic.Int32  // 0: two
	wait  atomic.Int64  // how long one waits for what is under way
}

const (
	// leastWait is how long one waits at least to share, before anything is known.
	leastWait = time.Millisecond
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
	timer := time.NewTimer(max(time.Duration(p.wait.Load()), leastWait))
	return timer.C, func() { timer.Stop() }
}

// took learns that n took so long together. It is called one at a time.
func (p *pace) took(n int, d time.Duration) {
	if p == nil {
		return
	}
	most := p.most()
	switch {
	case n == 1:
		if p.alone == 0 {
			p.alone = d
		}
		p.alone += (d - p.alone) / 4
		p.wait.Store(int64(2 * p.alone))
		if p.tries++; most == 1 && p.tries >= triesAgain {
			most, p.tries = 2, 0
		}
	case p.alone == 0: // nothing to compare with
	case d > p.alone*3/2:
		most = max(1, n/2)
		p.tries = 0
	case n == most:
		most = min(2*most, mostTogether)
	}
	p.limit.Store(int32(most))
}
