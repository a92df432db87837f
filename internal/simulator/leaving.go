package simulator

import (
	"slices"

	"github.com/semel-go/semel/internal/simulator/model"
)

// checkLeaving checks that what is to be left is left once nothing of it is
// under way (case 10).
func (c *checker) checkLeaving() {
	if c.over || c.p.over {
		return
	}
	if c.stopping && c.p.fetch == nil && !c.claims.asking && len(c.p.flights) == 0 && c.p.settles == 0 && !c.settlesFailed() {
		c.broke("case 10", "nothing is under way, and a stop has not ended")
	}
	for _, l := range c.w.source.Lanes {
		s := c.lanes[l.Current()]
		if !l.Held || s == nil || !s.revoking || s.released {
			continue
		}
		if h := c.underWay(l); h == nil {
			c.broke("case 10", "nothing of %s is under way, and it is revoked and not released", l.ID)
		}
		c.arose("case 10")
	}
}

// underWay returns a delivery that a revoked lane must wait for, nil if there is
// none: one in a flight, one that is being settled, or a copy of one in a flight,
// which is settled with it.
func (c *checker) underWay(l *model.Lane) *handed {
	for _, h := range c.hands {
		if h.item.Lane != l.Current() || h.told || h.stale {
			continue
		}
		if h.flight != nil || h.asked || h.left || c.flies(h) {
			return h
		}
	}
	return nil
}

// flies reports whether an open flight has a copy of the delivery, or what has its former
// identity.
func (c *checker) flies(h *handed) bool {
	return slices.ContainsFunc(c.p.flights, func(f *flight) bool {
		for i := range f.of.Entries {
			if f.message(i).ID == h.delivery.Message.ID || formerOf(f.of.Entries[i].Item) == formerOf(h.item) {
				return true
			}
		}
		return false
	})
}

// settlesFailed reports whether a Settle waits to be tried again.
func (c *checker) settlesFailed() bool {
	return slices.ContainsFunc(c.hands, func(h *handed) bool { return h.left && !h.told })
}
