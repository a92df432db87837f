package simulator

import (
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/plan"
)

// Mode is something that only some seeds have, so that who looks for what belongs to it
// need not run the others.
type Mode string

// The modes.
const (
	Calls   Mode = "calls"   // handlers call out
	Steps   Mode = "steps"   // messages have several steps
	Intents Mode = "intents" // handlers write intents, which a sender sends
	Replays Mode = "replay"  // persons replay what was, beside live copies
	Twins   Mode = "twins"   // persons act on rows of one identity
	Clocks  Mode = "clocks"  // the store's clock is wrong for a while
)

// Has reports whether a seed has a mode; every one has "".
func (m Mode) Has(seed uint64) bool {
	if m == "" {
		return true
	}
	p := plan.Draw(chance.FromSeed(seed))
	switch m {
	case Calls:
		return p.Calls || p.Intends()
	case Steps:
		return p.Steps > 0
	case Replays:
		return p.Replays()
	case Twins:
		return p.Twins
	case Clocks:
		return p.Clocks
	}
	return p.Intends()
}

// Search is where seeds are looked for that break a law.
type Search struct {
	Start uint64
	Seeds int
	// Mode, if not empty, leaves out those that do not have it. Law, if not empty, is the
	// only one that counts.
	Mode Mode
	Law  string
}

// First returns the smallest seed that breaks the law. It looks at a few seeds at a time,
// since most are found soon, and later at many.
func First(make Maker, s Search) (Failure, bool) {
	chunk, end := 4, s.Start+uint64(s.Seeds)
	for next := s.Start; next < end; chunk = min(2*chunk, 64) {
		var seeds []uint64
		for ; next < end && len(seeds) < chunk; next++ {
			if s.Mode.Has(next) {
				seeds = append(seeds, next)
			}
		}
		for _, f := range sweep(seeds, make).Failures {
			if s.Law == "" || f.Broken.Law == s.Law {
				return f, true
			}
		}
	}
	return Failure{}, false
}
