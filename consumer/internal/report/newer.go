package report

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
)

// mostHeld is the number of held messages that Ready names in its reason.
const mostHeld = 5

// holds remembers a held message. A message is held because a newer release marked the message, or marked an
// earlier message for which this message waits.
func (n *Reporter) holds(r machine.Report) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.newer == nil {
		n.newer = map[*machine.Item]string{}
	}
	n.newer[r.Item] = fmt.Sprintf("lane %s: message %q of source %q is held: %s", legible.Printable(r.Item.Lane.ID), r.Item.Identity, r.Item.Source, legible.Text(r.Err))
}

// holdsNoMore notes that a message is not held any more.
func (n *Reporter) holdsNoMore(it *machine.Item) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	delete(n.newer, it)
}

// partFetch is the part that does not work while held messages reach the limit of Config.MaxUnacked.
const partFetch = "fetch"

// fullOfNewer reports that nothing is fetched any more.
func (n *Reporter) fullOfNewer(messages int) {
	err := fmt.Errorf("%d messages that a newer release marked, or that wait for those, fill Config.MaxUnacked: start that release, or a newer one", messages)
	n.SetReady(partFetch, err.Error())
	n.Notify(semel.Event{Kind: semel.EventNotReady, Reason: partFetch, Messages: messages, Err: err})
	n.logger.Warn("nothing is fetched", "consumer", n.consumer, "error", err)
}

// Held returns the messages that are held because a newer release marked them.
func (n *Reporter) Held() []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var all []string
	for _, why := range n.newer {
		all = append(all, why)
	}
	slices.Sort(all)
	if further := len(all) - mostHeld; further > 0 {
		all = append(all[:mostHeld], fmt.Sprintf("and %d further messages that a newer release marked", further))
	}
	return all
}
