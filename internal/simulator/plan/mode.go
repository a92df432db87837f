package plan

import "github.com/semel-go/semel/internal/simulator/chance"

// Mode is a feature that only some seeds simulate. A search for faults of the feature runs only these seeds.
type Mode string

// The modes.
const (
	Calls   Mode = "calls"   // handlers make calls
	Steps   Mode = "steps"   // messages have several steps
	Intents Mode = "intents" // handlers write intents, and a sender sends them
	Replays Mode = "replay"  // persons replay the history while live processes run
	Twins   Mode = "twins"   // persons act on several rows of one identity
	Clocks  Mode = "clocks"  // the store's clock is wrong for some time
)

// Has reports whether a run with this seed simulates the feature. An empty m matches every seed.
func (m Mode) Has(seed uint64) bool {
	if m == "" {
		return true
	}
	p := Draw(chance.FromSeed(seed))
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
