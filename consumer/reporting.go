package consumer

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/report"
	"github.com/semel-go/semel/internal/machine"
)

// reporter is a report.Reporter that knows deliveries.
type reporter struct{ *report.Reporter }

func newReporter(c *settings) *reporter {
	return &reporter{report.New(c.Name, c.Logger, c.Observers, c.Source != nil)}
}

func (n *reporter) settled(s *machine.Settle) {
	for i := range s.Items {
		n.ended(&s.Items[i])
	}
}

func (n *reporter) ended(item *machine.Settlement) {
	var m *semel.Message
	if p, _ := item.Item.Handle.(*delivery.Delivery); p != nil {
		m = &p.Message
	}
	n.Ended(item, m)
}
