package engine

import (
	"log/slog"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/report"
	"github.com/semel-go/semel/internal/machine"
)

// Reporter is a report.Reporter that can read deliveries.
type Reporter struct{ *report.Reporter }

// NewReporter returns the reporter of a consumer; see report.New.
func NewReporter(consumer string, logger *slog.Logger, observers []semel.Observer, hasSource bool) *Reporter {
	return &Reporter{report.New(consumer, logger, observers, hasSource)}
}

func (n *Reporter) settled(s *machine.Settle) {
	for i := range s.Items {
		n.ended(&s.Items[i])
	}
}

func (n *Reporter) ended(item *machine.Settlement) {
	var m *semel.Message
	if p, _ := item.Item.Handle.(*delivery.Delivery); p != nil {
		m = &p.Message
	}
	n.Ended(item, m)
}
