package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// leasedWorkers is how many calls run at once unless the policy says: a call holds no
// connection of the store, and waits most of its time.
const leasedWorkers = 16

// lease judges what calls out, and what keeps the claims for it.
func (r rules) lease(from *Source) {
	c := r.consumer
	if !r.ok("strategy", "handler") {
		return
	}
	switch out := c.Handler.outside(); {
	case c.Strategy.Lease && out == nil:
		r.refuse("strategy", "lease is for calls outside, and statements belong into the transaction of their marker", "write strategy: marker, or handler: {http: {url: …}} or {kafka: {…}}")
	case out != nil && c.pure() && c.Strategy.Marker:
		r.pure(out)
	case !c.Strategy.Lease && out != nil:
		remedy := "write strategy: lease, and alerts: {pending_age: 60s}"
		if c.Handler.HTTP != nil {
			remedy += "; or, with strategy: marker, effects and pure: true if the endpoint changes nothing by itself"
		}
		r.refuse(out.at, "a call is in no transaction, so that no marker of one says whether it was made", remedy)
	case out != nil:
		r.leased(out)
	}
	if c.Handler.Kafka != nil {
		r.publishes(c.Handler.Kafka, from)
	}
	if c.Handler.HTTP != nil {
		r.endpoint(c.Handler.HTTP)
	}
}

// leased judges a consumer of leases, and gives it what it has unless the file says.
func (r rules) leased(out *outside) {
	c := r.consumer
	if !r.set("workers") {
		c.Workers = leasedWorkers
	}
	if r.set("ack") && !r.keyed() && !c.AckOnReceipt && r.ok("ack") {
		r.refuse("ack", "with lease a message is called for only when it is claimed from the inbox, where it is received first", "remove it")
	}
	c.AckOnReceipt = true
	r.callTimes(out)
	if c.Handler.HTTP != nil {
		r.window(c.Handler.HTTP)
	}
	const inside = "a call is in no transaction that it could commit with"
	for key, why := range map[string]string{
		"version": "a stream's version moves in the transaction of the effect: " + inside,
		"dedup":   "an adopted table is marked in the transaction of the effect: " + inside,
	} {
		if r.set(key) {
			r.refuse(key, why, "remove it")
		}
	}
	if r.ok("retention") && c.Retention.DailyPartitions {
		r.refuse("retention.daily_partitions", "markers by day stand beside strategy marker or inbox in this release", "remove it: they are removed in slices")
	}
	if r.set("batch") {
		r.warn("batch", "with lease each call is of one message", "remove it")
	}
	if key := "handler.http.connections"; r.set(key) && r.ok(key) {
		r.refuse(key, "with lease the start of a call is written down before it, and its claim does not wait for others' calls", "remove it: workers says how many calls are made at once")
	}
	if http := c.Handler.HTTP; http != nil && http.Pure && r.ok("handler.http.pure") {
		r.warn("handler.http.pure", "with lease a message is claimed before its call, and its start is written down, though an endpoint that changes nothing needs neither", "write strategy: marker")
	}
	if http := c.Handler.HTTP; r.set("on_precondition") && (http == nil || http.Effects == nil) {
		r.warn("on_precondition", "an endpoint cannot answer that its condition is unmet", "remove it; retry.on_exhausted says what follows an answer that refuses")
	}
}

// callTimes: a call has ended before another process may make it again, and before its
// context ends.
func (r rules) callTimes(out *outside) {
	c := r.consumer
	key := out.at + ".timeout"
	if !r.ok("inbox", "timeout") {
		return
	}
	call, lease := legible.Span(out.timeout), legible.Span(c.Inbox.Lease)
	if out.timeout >= c.Inbox.Lease {
		r.refuse(key, fmt.Sprintf("a call may take %s, and its claim is another process's after %s if nobody can extend it: two would call at once", call, lease),
			fmt.Sprintf("write less than %s, or inbox: {lease: %s}", lease, legible.Span(out.timeout+longerLease)))
	}
	if out.timeout > c.Timeout {
		r.refuse(key, fmt.Sprintf("a call may take %s, and the consumer's timeout ends it after %s", call, legible.Span(c.Timeout)),
			fmt.Sprintf("write at most %s, or timeout: %s at the consumer", legible.Span(c.Timeout), call))
	}
	if r.ok("drain") && out.timeout > c.Drain {
		r.warn(key, fmt.Sprintf("a stop waits %s for a call that may take %s, and then cuts it: it is made again", legible.Span(c.Drain), call),
			"let drain of the consumer be at least as long")
	}
}

// window: what is left of it without the last call must be something.
func (r rules) window(http *HTTP) {
	c := r.consumer
	if http.Window > 0 && r.ok("timeout") && http.Window <= c.Timeout {
		r.refuse("handler.http.window", fmt.Sprintf("an endpoint that knows keys for %s may have forgotten one when a call arrives that may take %s", legible.Span(http.Window), legible.Span(c.Timeout)),
			"write for how long it knows them, or lower timeout of the consumer")
	}
}

// longerLease is how much longer than a call a lease is that a remedy names.
const longerLease = 10 * time.Second

// endpoint judges keys of the handler against one another.
func (r rules) endpoint(http *HTTP) {
	const at = "handler.http."
	r.keyless(http)
	plain := strings.HasPrefix(strings.ToLower(http.URL), "http:")
	switch key, reason, remedy := http.TLS.half(); {
	case key != "":
		r.refuse(at+"tls."+key, reason, remedy)
	case http.TLS != nil && plain:
		r.refuse(at+"tls", "the URL begins with http:, where nothing is encrypted", "write https:, or remove tls")
	}
	if plain && !http.local() && slices.ContainsFunc(http.Headers, func(h HTTPHeader) bool { return isCredential(h.Name) }) {
		r.warn(at+"headers", "the credentials go over the network readable, because the URL begins with http:", "write https:")
	}
}

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

// keyless judges calls that carry no key: somebody has to say what they may do.
func (r rules) keyless(http *HTTP) {
	const at = "handler.http."
	double, lost := r.set(at+"may_double"), r.set(at+"may_be_lost")
	if !r.ok(at+"key", at+"may_double", at+"may_be_lost") {
		return
	}
	if http.NoKey && r.set(at+"window") {
		r.refuse(at+"window", "no key is sent that the endpoint could know", "remove it; may_double or may_be_lost says what follows an unknown outcome")
	}
	switch {
	case double && lost:
		r.refuse(at+"may_be_lost", "a call whose outcome is unknown is made again, or it is not: may_double says that it is", "keep one of the two")
	case http.NoKey && !double && !lost && !r.consumer.pure():
		r.refuse(at+"key", "nobody recognises a call without a key when it is made again, and after a crash or a lost answer nobody knows whether it was carried out",
			`say which of the two does no harm, with the reason: may_double: "…", or may_be_lost: "…"; or remove it, and write window: none if a person is to decide`)
	case !http.NoKey && double:
		r.refuse(at+"may_double", "a call is made again under its key, by which the other side recognises it", "remove it, or write key: none if the other side knows no keys")
	case !http.NoKey && lost:
		r.refuse(at+"may_be_lost", "a call is made again under its key, by which the other side recognises it", "remove it, or write key: none if the other side knows no keys")
	}
}
