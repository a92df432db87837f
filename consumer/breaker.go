package consumer

import (
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
)

// haltAfter is after how many messages that fail for good the breaker opens, 0: never.
func (r *RetryPolicy) haltAfter() int {
	switch {
	case r.DisableBreaker:
		return 0
	case r.BreakerThreshold > 0:
		return r.BreakerThreshold
	}
	return defaultHaltAfter
}

// breakerOpen tells of a message that failed for good while the circuit breaker is open,
// or has opened it. Observers hear each; the log has the first as an error, and one a
// minute. Health shows no text of the handler's error, which may quote a payload.
func (n *reporter) breakerOpen(r machine.Report) {
	n.setReady(r.Part, fmt.Sprintf("%d tries in a row failed for good: nothing more is fetched, and one message is tried at a time until one succeeds; the log names the error", r.N))
	e := n.about(r.Item, semel.Event{Kind: semel.EventNotReady, Reason: semel.Reason(r.Part), Messages: r.N, Wait: r.Wait, Err: r.Err})
	n.tell(e)
	now, o := time.Now(), n.outages[r.Part]
	if o == nil {
		o = &outage{began: now, logged: now}
		n.outages[r.Part] = o
		n.logger.Error("the circuit breaker is open: messages fail for good one after the other; nothing more is fetched, and one is tried at a time until one succeeds",
			"consumer", n.consumer, "failed", r.N, "id", e.Key.ID, "lane", e.Lane, "wait", rounded(r.Wait), "error", cause(r.Err))
	}
	o.tries++
	if now.Sub(o.logged) >= outageEvery {
		o.logged = now
		n.logger.Error("the circuit breaker is still open", "consumer", n.consumer, "for", rounded(now.Sub(o.began)), "tries", o.tries, "id", e.Key.ID, "error", cause(r.Err))
	}
}
