package simulator

import "github.com/semel-go/semel/internal/machine"

// checkHeld holds what the machine says that it holds against what it was given
// and what has not been settled (law 11). While something is being left, what is
// dropped and when is the machine's affair; checkLeaving sees to its end.
func (c *checker) checkHeld() {
	if c.over || c.p.over || c.stopping || c.halting() {
		return
	}
	messages, bytes := 0, int64(0)
	for _, h := range c.hands {
		switch {
		case h.told:
			continue
		case h.stale && h.left, !h.stale && c.lanes[h.item.Lane].revoking:
			return
		case h.stale && h.flight == nil && !h.asked:
			continue // dropped with its lane
		}
		messages++
		bytes += int64(h.item.Size)
	}
	if m, b := c.p.machine.Unsettled(); m != messages || b != bytes {
		c.broke("law 11", "the machine holds %d messages of %d bytes, and should hold %d of %d", m, b, messages, bytes)
	}
}

// checkSize holds the machine's queues against the bound, and the items that a
// step touched against those that it could have moved (law 11).
func (c *checker) checkSize(e machine.Event) {
	size := c.p.machine.Size()
	held, _ := c.p.machine.Unsettled()
	brought := 0
	switch e := e.(type) {
	case machine.Fetched:
		brought = len(e.Items)
	case machine.Claimed:
		brought = len(e.Items)
	}
	touched := size.Touched - c.size.Touched
	switch most := 8*(c.held+brought) + 8; {
	case touched > most:
		c.broke("law 11", "a step touched %d items; the machine held %d and was brought %d", touched, c.held, brought)
	case size.Queue > 4*c.p.config.MaxMessages+8:
		c.broke("law 11", "a queue has room for %d; the bound is %d messages", size.Queue, c.p.config.MaxMessages)
	case held == 0 && size.Kept > 0:
		c.broke("law 11", "the machine holds no message and keeps %d entries", size.Kept)
	}
	if touched > 8 && held == 0 {
		c.w.coverage.Add("fault", "many deliveries left at once")
	}
	c.size, c.held = size, held
}
