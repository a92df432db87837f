package report

import (
	"context"
	"log/slog"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
)

// ReEmitted logs and counts intents that are sent again because of duplicates. The parameter forgotten is the number of
// intents that are not sent again because the other system may have forgotten their keys.
func (n *Reporter) ReEmitted(again, forgotten int) {
	if again > 0 {
		n.reEmitted.Add(int64(again))
		n.logger.Debug("intents are sent again, because of duplicates", "consumer", n.consumer, "intents", again)
	}
	n.NotReEmitted(forgotten)
}

// NotReEmitted reports intents that are not sent again because the other system may have forgotten their
// keys. The first, the tenth, the hundredth such intent and so on are logged.
func (n *Reporter) NotReEmitted(forgotten int) {
	if forgotten == 0 {
		return
	}
	before := n.forgotten.Add(int64(forgotten)) - int64(forgotten)
	n.Notify(semel.Event{Kind: eventkind.NotReEmitted, Messages: forgotten})
	for so := before + 1; so <= before+int64(forgotten); so++ {
		if powerOfTen(so) {
			n.logger.Log(context.Background(), slog.LevelWarn, string(eventkind.NotReEmitted), "consumer", n.consumer, "intents", forgotten, "so_far", so,
				"why", "the other side may have forgotten their keys, and would do them a second time")
			return
		}
	}
}
