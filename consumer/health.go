package consumer

import (
	"time"

	"github.com/semel-go/semel/measure"
)

// Load returns what the consumer has in hand; nothing before it runs and when its run is
// over. It may be called at any time and asks nobody.
func (c *Consumer[Tx]) Load() measure.Load {
	if e := c.running(); e != nil {
		return e.Load()
	}
	return measure.Load{}
}

// Alive reports whether the consumer works, or pauses by decision: its own, since its store
// or its source is down or its run is over, or a person's. If not, it says why: the
// handlers of all workers go on after their time-outs, or the engine itself stands still. A
// restart of the process may mend that, and nothing else that Ready tells. It may be
// called at any time and asks nobody.
func (c *Consumer[Tx]) Alive() (bool, string) {
	if e := c.running(); e != nil {
		return e.Alive()
	}
	return true, ""
}

// StoreDown says since when the store, or that of the keys, has not worked, and why; the zero
// time while it works, and before it was asked. Whoever decides on more than Alive does may
// look at it. It may be called at any time and asks nobody.
func (c *Consumer[Tx]) StoreDown() (since time.Time, why string) { return c.reporter.StoreDown() }
