package policy

import (
	"fmt"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// pure reports whether the consumer's endpoint changes nothing, and answers with effects.
func (c *Consumer) pure() bool {
	h := c.Handler.HTTP
	return h != nil && h.Pure && h.Effects != nil
}

// pure judges a consumer of an endpoint that only answers, and gives it what it has unless
// the file says.
func (r rules) pure(out *outside) {
	c := r.consumer
	if !r.set("workers") {
		c.Workers = leasedWorkers
	}
	if h := c.Handler.HTTP; h.Connections == 0 {
		h.Connections = c.Workers
	} else if at := out.at + ".connections"; h.Connections > c.Workers && r.ok(at, "workers") {
		r.refuse(at, fmt.Sprintf("each call is made by a worker, and there are %d", c.Workers), fmt.Sprintf("write workers: %d or more, or fewer connections", h.Connections))
	}
	if !r.set("lanes") {
		c.Lanes = consumer.LanesNone // or calls of a partition would be made one after the other
	}
	if r.ok("timeout") && out.timeout > c.Timeout {
		r.refuse(out.at+".timeout", fmt.Sprintf("a call may take %s, and the consumer's timeout ends it after %s", legible.Span(out.timeout), legible.Span(c.Timeout)),
			fmt.Sprintf("write at most %s, or timeout: %s at the consumer", legible.Span(c.Timeout), legible.Span(out.timeout)))
	}
	for key, why := range map[string]string{
		"version":               "a stream's version moves with its message alone, and answers share transactions",
		"dedup":                 "an adopted table is marked by a transaction of one store, and answers share them",
		"identity.previous":     "messages that share a former identity never share a transaction, and answers do",
		"handler.http.window":   "a call to an endpoint that changes nothing is made again whenever it is needed",
		"strategy.business_key": "the constraint would refuse the answers of all messages that share the transaction",
	} {
		if r.set(key) && r.ok(key) {
			r.refuse(key, why, "remove it, or write strategy: lease and alerts: {pending_age: 60s}")
		}
	}
	if c.Effect != nil && c.Effect.Kind == External && r.ok("effect.kind", out.at+".pure") {
		r.refuse(out.at+".pure", "the endpoint changes nothing by itself, and an effect of the kind external is something outside of the database", "write the kind of what its answers do, or strategy: lease and remove pure")
	}
	if r.ok("retention") && c.Retention.DailyPartitions {
		r.refuse("retention.daily_partitions", "markers by day stand beside strategy marker or inbox without an endpoint in this release", "remove it: they are removed in slices")
	}
	if r.set("batch") {
		r.warn("batch", "each call is of one message, and how many answers share a transaction is found out while it runs", "remove it")
	}
}
