package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// leasedWorkers is the default number of concurrent calls. A call mostly waits, and holds no database
// connection.
const leasedWorkers = 16

// checkOutsideCall checks that consumers which call other systems use strategy lease, and that all other consumers use
// another strategy.
func (r rules) checkOutsideCall(from *Source) {
	c := r.consumer
	if !r.isValid("strategy", "handler") {
		return
	}
	switch out := c.Handler.outsideCall(); {
	case r.refuseIf(c.Strategy.Lease && out == nil, "strategy", "lease is for calls to other systems, but statements belong into the transaction of their marker", "write strategy: marker, or handler: {http: {url: …}} or {kafka: {…}}"):
	case out != nil && c.isPure() && c.Strategy.Marker:
		r.checkCalls(out)
		r.checkPure(out)
	case !c.Strategy.Lease && out != nil:
		remedy := "write strategy: lease, and alerts: {pending_age: 60s}"
		if c.Handler.HTTP != nil {
			remedy += "; or, with strategy: marker, effects and pure: true if the endpoint itself changes nothing"
		}
		r.refuse(out.path, "a call is not part of a transaction, so a marker in a transaction cannot tell whether the call happened", remedy)
	case out != nil:
		r.checkCalls(out)
		r.checkLease(out)
	}
	if c.Handler.Kafka != nil {
		r.checkPublish(c.Handler.Kafka, from)
	}
	if c.Handler.HTTP != nil {
		r.checkEndpoint(c.Handler.HTTP)
	}
}

// checkCalls checks a consumer whose handler makes calls, and sets the consumer's defaults.
func (r rules) checkCalls(out *outsideCall) {
	c := r.consumer
	if !r.isSet("workers") {
		c.Workers = leasedWorkers
	}
	r.refuseIf(r.isValid("timeout") && out.timeout > c.Timeout, out.path+".timeout", fmt.Sprintf("a call may take %s, but the consumer's timeout ends it after %s", legible.Span(out.timeout), legible.Span(c.Timeout)),
		fmt.Sprintf("write at most %s, or timeout: %s at the consumer", legible.Span(c.Timeout), legible.Span(out.timeout)))
	r.refuseIf(r.isSet("dedup"), "dedup", "the user's table is written in the transaction of the effect, but a call is not part of a transaction", "remove it")
	r.refuseIf(r.isValid("retention") && c.Retention.DailyPartitions, "retention.daily_partitions", "daily partitions need strategy marker or inbox without an endpoint in this release", "remove it: markers are then removed in slices")
	r.warnIf(r.isSet("batch"), "batch", "each call is for one message, and batches are sized automatically", "remove it")
}

// checkLease checks a consumer with strategy lease and sets the defaults of the strategy.
func (r rules) checkLease(out *outsideCall) {
	c := r.consumer
	r.refuseIf(r.isSet("ack") && !r.usesKeyStore() && !c.AckOnReceipt && r.isValid("ack"), "ack", "with lease, a message is always stored in the inbox first, and called later under a claim", "remove it")
	c.AckOnReceipt = true
	r.checkCallTimes(out)
	const connections = "handler.http.connections"
	http := c.Handler.HTTP
	r.refuseIf(r.isSet(connections) && r.isValid(connections), connections, "with lease, each call is recorded before it starts and does not wait for other calls", "remove it: workers limits the concurrent calls")
	r.warnIf(http != nil && http.Pure && r.isValid("handler.http.pure"), "handler.http.pure", "with lease, each call is claimed and recorded first, which an endpoint that changes nothing does not need", "write strategy: marker")
	r.warnIf(r.isSet("on_precondition") && (http == nil || http.Effects == nil), "on_precondition", "an endpoint cannot report a failed precondition", "remove it; retry.on_exhausted decides about rejected calls")
}

// checkCallTimes checks that a call ends before the lease expires, because another process may then repeat the call,
// and that a shutdown waits for the call.
func (r rules) checkCallTimes(out *outsideCall) {
	c := r.consumer
	key := out.path + ".timeout"
	call, lease := legible.Span(out.timeout), legible.Span(c.Inbox.Lease)
	r.refuseIf(r.isValid("inbox") && out.timeout >= c.Inbox.Lease, key, fmt.Sprintf("a call may take %s, but another process can claim the message after %s if the lease is not extended: both would call at the same time", call, lease),
		fmt.Sprintf("write less than %s, or inbox: {lease: %s}", lease, legible.Span(out.timeout+longerLease)))
	r.warnIf(r.isValid("drain") && out.timeout > c.Drain, key, fmt.Sprintf("a shutdown waits %s for a call that may take %s, and then cancels it: the call is repeated", legible.Span(c.Drain), call),
		"raise drain of the consumer to at least that")
}

// longerLease is the time that is added to the call timeout to get a suggested lease.
const longerLease = 10 * time.Second

// checkEndpoint checks which policy keys of an HTTP handler are set together.
func (r rules) checkEndpoint(http *HTTP) {
	const at = "handler.http."
	r.checkKeyless(http)
	plain := strings.HasPrefix(strings.ToLower(http.URL), "http:")
	switch key, reason, remedy := http.TLS.missingHalf(); {
	case r.refuseIf(key != "", at+"tls."+key, reason, remedy):
	case r.refuseIf(http.TLS != nil && plain, at+"tls", "the URL begins with http:, which is not encrypted", "write https:, or remove tls"):
	}
	r.warnIf(plain && !http.isLocal() && slices.ContainsFunc(http.Headers, func(h HTTPHeader) bool { return isCredential(h.Name) }), at+"headers", "the credentials are sent in plain text, because the URL begins with http:", "write https:")
}

// isPure reports whether the consumer's endpoint is declared to change nothing and to respond with effects.
func (c *Consumer) isPure() bool {
	h := c.Handler.HTTP
	return h != nil && h.Pure && h.Effects != nil
}

// checkPure checks a consumer whose endpoint changes nothing, and sets the consumer's defaults.
func (r rules) checkPure(out *outsideCall) {
	c := r.consumer
	if h := c.Handler.HTTP; h.Connections == 0 {
		h.Connections = c.Workers
	} else if at := out.path + ".connections"; h.Connections > c.Workers && r.isValid(at, "workers") {
		r.refuse(at, fmt.Sprintf("each call needs a worker, and there are only %d", c.Workers), fmt.Sprintf("write workers: %d or more, or fewer connections", h.Connections))
	}
	if !r.isSet("lanes") {
		c.Lanes = consumer.LanesNone // with lanes, the calls of a partition would run one after the other
	}
	for key, why := range map[string]string{
		"handler.http.window":   "calls to an endpoint that changes nothing can always be repeated",
		"strategy.business_key": "a violation would roll back the responses of all messages in the transaction",
	} {
		r.refuseIf(r.isSet(key) && r.isValid(key), key, why, "remove it, or write strategy: lease and alerts: {pending_age: 60s}")
	}
	r.refuseIf(c.Effect != nil && c.Effect.Kind == External && r.isValid("effect.kind", out.path+".pure"), out.path+".pure", "the endpoint itself changes nothing, but an effect of the kind external is outside the database", "write the kind of the effects in its responses, or write strategy: lease and remove pure")
}

// checkKeyless checks calls without an idempotency key. A policy with calls without a key must say whether an
// unknown outcome may mean a double effect or a lost effect.
func (r rules) checkKeyless(http *HTTP) {
	const at = "handler.http."
	double, lost := r.isSet(at+"may_double"), r.isSet(at+"may_be_lost")
	if !r.isValid(at+"key", at+"may_double", at+"may_be_lost") {
		return
	}
	r.refuseIf(http.NoKey && r.isSet(at+"window"), at+"window", "no key is sent, so there is no window", "remove it; may_double or may_be_lost decides about unknown outcomes")
	switch {
	case r.refuseIf(double && lost, at+"may_be_lost", "may_double and may_be_lost exclude each other: a call with an unknown outcome is either repeated or not", "keep one of the two"):
	case r.refuseIf(http.NoKey && !double && !lost && !r.consumer.isPure(), at+"key", "a repeated call without a key is not recognised, and after a crash or a lost answer it is unknown whether a call was carried out",
		`declare which of the two is harmless, with the reason: may_double: "…", or may_be_lost: "…"; or remove it, and write window: none if operators should decide`):
	case r.refuseIf(!http.NoKey && double, at+"may_double", "a repeated call has the same key, by which the other side recognises it", "remove it, or write key: none if the other side knows no keys"):
	case r.refuseIf(!http.NoKey && lost, at+"may_be_lost", "a repeated call has the same key, by which the other side recognises it", "remove it, or write key: none if the other side knows no keys"):
	}
}
