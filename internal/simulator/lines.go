package simulator

import (
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/source"
)

// line is what keeps an order: a lane, or a key.
type line struct {
	lane  source.Lane
	route uint64
}

// lineOf returns the line of an item; false: it has no order.
func (c *checker) lineOf(it *machine.Item) (line, bool) {
	switch {
	case it.Claim != nil:
	case c.p.config.Lanes == machine.Partition:
		return line{lane: it.Lane}, true
	case c.p.config.Lanes == machine.Key:
		return line{route: it.Route}, true
	}
	return line{}, false
}

// inLine reports whether a delivery keeps those back that stand behind it in their
// lane, if they are of this route.
func (c *checker) inLine(before *model.Delivery, route uint64) bool {
	return c.p.config.Lanes == machine.Partition || before.Message.Route == route
}
