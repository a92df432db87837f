package consumer

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/control"
)

// processAgain is the wait after which a message comes again that Process handed back because the
// consumer is paused.
const processAgain = 30 * time.Second

// controls are the pause and the limit that operators set.
type controls struct {
	*control.Control // nil: the store keeps none
	// beside has the turns at the store of everything that works beside the batches: the reading of
	// controls and the tasks.
	beside beside
}

func newControls(c *settings, store any, n *reporter) controls {
	b := newBeside()
	return controls{beside: b, Control: control.New(store, control.Options{
		Consumer: c.Name, Stored: c.controlled(), Logger: c.Logger, Turn: b.do, Notify: n.Notify, NotAsked: n.SourceNotAsked})}
}

// handsBack is what Process answers for n messages while the consumer is paused; nil if it is not
// paused.
func (g controls) handsBack(n int) []Disposition {
	if !g.Paused() {
		return nil
	}
	all := make([]Disposition, n)
	for i := range all {
		all[i] = Disposition{Kind: semel.Nack, After: processAgain, Reason: semel.ReasonPaused}
	}
	return all
}
