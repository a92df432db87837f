package measure

import "time"

// Stopwatch adds up for how long something is so, as that batches run one at a time. The zero
// value stands still at 0. It is not safe for concurrent use.
type Stopwatch struct {
	runs   bool
	since  time.Time     // when it was started last
	before time.Duration // what it had added up by then
}

// Turn starts or stops it; one that does so already goes on.
func (s *Stopwatch) Turn(on bool, now time.Time) {
	switch {
	case on && !s.runs:
		s.since = now
	case !on && s.runs:
		s.before += now.Sub(s.since)
	}
	s.runs = on
}

// Read is what is added up, and whether it runs.
func (s *Stopwatch) Read(now time.Time) (time.Duration, bool) {
	if s.runs {
		return s.before + now.Sub(s.since), true
	}
	return s.before, false
}
