package plan

import "github.com/semel-go/semel/internal/simulator/chance"

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
