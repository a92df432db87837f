package measure

import "time"

// Stopwatch adds up the time during which a state lasts, for example that batches run one at a time. The zero
// value is stopped at 0. Stopwatch is not safe for concurrent use.
type Stopwatch struct {
	runs   bool
	since  time.Time     // the last start
	before time.Duration // the sum of the periods before
}

// Turn starts or stops the stopwatch. Turn does nothing if the stopwatch is in that state
// already.
func (s *Stopwatch) Turn(on bool, now time.Time) {
	switch {
	case on && !s.runs:
		s.since = now
	case !on && s.runs:
		s.before += now.Sub(s.since)
	}
	s.runs = on
}

// Read returns the sum, and whether the stopwatch runs.
func (s *Stopwatch) Read(now time.Time) (time.Duration, bool) {
	if s.runs {
		return s.before + now.Sub(s.since), true
	}
	return s.before, false
}
