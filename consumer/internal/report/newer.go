package report

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
)

// mostHeld is the maximum number of messages waiting for a newer release that Ready names in its reason.
const mostHeld = 5

// addNewer remembers a message that waits for a newer release, because that release has marked the message or an
// earlier message of the same key or lane.
func (n *Reporter) addNewer(r machine.Report) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.newer == nil {
		n.newer = map[*machine.Item]string{}
	}
	n.newer[r.Item] = fmt.Sprintf("lane %s: message %q of source %q is held: %s", legible.Printable(r.Item.Lane.ID), r.Item.Identity, r.Item.Source, legible.Text(r.Err))
}

// removeNewer removes a message that no longer waits for a newer release.
func (n *Reporter) removeNewer(it *machine.Item) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	delete(n.newer, it)
}

// partFetch is the part that does not work while the messages that wait for a newer release reach the limit
// Config.MaxUnacked.
const partFetch = "fetch"

// reportFullOfNewer reports that the consumer fetches no more messages, because too many messages wait for a newer
// release.
func (n *Reporter) reportFullOfNewer(messages int) {
	err := fmt.Errorf("%d messages that a newer release marked, or that wait for those, fill Config.MaxUnacked: start that release, or a newer one", messages)
	n.SetReady(partFetch, err.Error())
	n.Notify(semel.Event{Kind: semel.EventNotReady, Reason: partFetch, Messages: messages, Err: err})
	n.logger.Warn("nothing is fetched", "consumer", n.consumer, "error", err)
}

// Held describes the messages that wait because a newer release of Semel marked them.
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
