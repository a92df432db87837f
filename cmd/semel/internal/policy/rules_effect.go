package policy

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/kafka"
)

// checkEffect checks whether the strategy protects the consumer's kind of effect.
func (r rules) checkEffect() {
	k, ok := r.consumer.Effect.description()
	if !ok || !r.isValid("effect", "strategy") {
		return
	}
	why := k.unsuitableGuards[r.consumer.guard()]
	r.refuseIf(why != "", "strategy", fmt.Sprintf("it does not protect an effect of the kind %s: %s", k.kind, why), k.remedy(r.consumer.guard()))
	r.refuseIf(k.needsRetention && !r.isSet("retention"), "effect.kind", fmt.Sprintf("an effect of the kind %s needs a retention, which is missing", k.kind),
		"write retention: forever")
}

// remedy returns how to protect an effect of kind k if guard g does not protect the effect.
func (k effectKind) remedy(g guard) string {
	switch {
	case g == byLease:
		return "write kind: external if the other side keeps keys, strategy: marker and statements, or handler.http.effects, and respond with effects"
	case k.unsuitableGuards[byMarker] == "":
		return "write strategy: marker"
	}
	return "write strategy: lease, and handler: {http: {url: …}}"
}

// checkStoreDown checks whether a consumer may apply messages while its store is down (C10).
func (r rules) checkStoreDown() {
	c := r.consumer
	if !c.FailOpen || !r.isValid("on_store_down", "store", "strategy", "effect") {
		return
	}
	const pause = "write on_store_down: pause"
	kind, declared := c.Effect.description()
	switch {
	case r.store == nil:
	case r.refuseIf(!r.usesKeyStore() && c.Strategy.Lease, "on_store_down", "with lease a message is stored before its call, which is impossible while the store is down", pause):
	case r.refuseIf(!r.usesKeyStore(), "on_store_down", "the effect is in the store, so nothing can be applied while the store is down", pause):
	case r.refuseIf(!declared, "on_store_down", "a message without a key is applied again with each copy, and no effect is declared for which this is harmless",
		"declare effect: {kind: …, says: \"…\"} of a kind that is idempotent by nature ("+strings.Join(naturalKinds(), ", ")+"), if it is one, or "+pause):
	case r.refuseIf(kind.unsuitableGuards[byNature] != "", "on_store_down", fmt.Sprintf("an effect of the kind %s is not idempotent by nature: %s", kind.kind, kind.unsuitableGuards[byNature]), pause):
	}
}

// naturalKinds returns the kinds of effects that may happen twice.
func naturalKinds() (kinds []string) {
	for _, k := range effectKinds() {
		if k.unsuitableGuards[byNature] == "" {
			kinds = append(kinds, string(k.kind))
		}
	}
	return kinds
}

// Risk is a risk that the policy accepts. Metrics use a fixed set of names.
type Risk struct {
	// Name is the label in metrics. Says describes the risk to people.
	Name, Says string
}

// The names of risks.
const (
	RiskMayDouble     = "may double"
	RiskMayBeLost     = "may be lost"
	RiskWithoutKey    = "without key"
	RiskLateCopies    = "late copies"
	RiskUncompared    = "uncompared"
	RiskRecordsPassed = "records passed by"
	RiskUnsigned      = "unsigned"
)

// Risks returns the risks that the policy accepts for a consumer.
func (p *Policy) Risks(c *Consumer) (all []Risk) {
	add := func(is bool, name, says string) {
		if is {
			all = append(all, Risk{name, says})
		}
	}
	if h := c.Handler.HTTP; h != nil {
		add(h.MayDouble != "", RiskMayDouble, "calls may double: "+h.MayDouble)
		add(h.MayBeLost != "", RiskMayBeLost, "calls may be lost: "+h.MayBeLost)
	}
	add(c.FailOpen, RiskWithoutKey, "while Redis is down messages are applied without a key")
	add(c.Strategy.Natural != nil, RiskLateCopies, "late copies are applied again")
	add(c.Identity.Previous != nil && c.Identity.Previous.TrustUnfingerprinted, RiskUncompared, "messages that cannot be compared under the previous identity count as copies")
	if s := p.Source(c.From); s != nil && s.Webhook != nil {
		u := s.Webhook.Unsigned
		add(len(u.Headers) > 0, RiskUnsigned, "the headers are not signed: "+strings.Join(u.Headers, ", ")+": "+u.Because)
	}
	if s := p.Source(c.From); s != nil && s.Kafka != nil {
		add(s.Kafka.OnLostRecords == kafka.GoOn, RiskRecordsPassed, "records that the broker has lost are passed by")
	}
	return all
}

// isReplayable reports whether messages with this kind of effect may be replayed by default. If an effect of such a
// kind happens a second time, it does no harm.
func (k effectKind) isReplayable() bool {
	return k.kind == Projection || k.kind == Cache || k.kind == AuditCopy
}

// checkReplay checks whether the consumer can replay messages, and the settings of replays.
func (r rules) checkReplay(from *Source) {
	c := r.consumer
	if !r.isValid("replay", "effect", "handler", "strategy", "retention", "from") {
		return
	}
	out := c.Handler.outsideCall()
	kind, known := c.Effect.description()
	if !r.isSet("replay.allowed") {
		c.Replay.Allowed = known && kind.isReplayable() && out == nil && !c.Sends() && !r.usesKeyStore() && !from.deliversOnce()
	}
	switch {
	case r.refuseIf(c.Replay.Allowed && c.Sends(), "replay.allowed", "it has no source that can be read again: other consumers write its intents", "remove it, and replay the consumers that write for it"):
	case r.refuseIf(c.Replay.Allowed && from.deliversOnce(), "replay.allowed", "webhooks cannot be read again; their messages are in the inbox", "remove it; semel messages retry runs a row again"):
	case r.refuseIf(c.Replay.Allowed && r.usesKeyStore(), "replay.allowed", "store "+c.Store+" only keeps keys for some time and no replays, so an old message would take effect again", "remove it, or use a database as store"):
	case r.warnIf(!c.Replay.Allowed && r.isSet("replay") && (r.isSet("replay.effects") || r.isSet("replay.max_age") || r.isSet("replay.looks")), "replay", "replays are not allowed, so this has no effect", "add allowed: true, or remove it"):
	case c.Replay.Allowed:
		r.checkAllowedReplay(from)
	}
}

// checkAllowedReplay checks the settings of a consumer that allows replays.
func (r rules) checkAllowedReplay(from *Source) {
	c := r.consumer
	out := c.Handler.outsideCall()
	switch {
	case r.warnIf(c.Replay.Looks && out == nil, "replay.looks", "this consumer calls no endpoint that could check", "remove it"):
	case r.refuseIf(c.Replay.Looks && c.Handler.Kafka != nil, "replay.looks", "a topic cannot check: each message would be published", "write effects: real, or remove allowed"):
	case r.warnIf(c.Replay.Looks && c.Replay.Effects, "replay.looks", "effects are allowed anyway", "remove it, or write effects: none"):
	case out != nil && !c.Replay.Effects && !c.Replay.Looks:
		remedy := "write effects: real if a second call is harmless, or looks: true if the endpoint obeys the header semel-effects"
		if c.Handler.Kafka != nil {
			remedy = "write effects: real if a second record is harmless, or remove allowed"
		}
		r.refuse("replay.effects", "none forbids external effects, but this consumer's handler is a call that each replayed message would make", remedy)
	}
	if !r.isSet("replay.max_age") {
		c.Replay.MaxAge = c.Retention.Keep
		return
	}
	switch keep := c.Retention.Keep; {
	case r.refuseIf(keep > 0 && c.Replay.MaxAge > keep, "replay.max_age", fmt.Sprintf("it is %s, but markers are kept for %s (retention): a message between the two would take effect again", legible.Span(c.Replay.MaxAge), legible.Span(keep)),
		"write at most "+legible.Span(keep)+", or raise retention"):
	case r.refuseIf(from.hasNoTime(), "replay.max_age", "messages of the source "+from.name()+" have no time, so old ones cannot be recognised", "remove it, or have the producer write CloudEvents with a time"):
	}
}
