package policy

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/kafka"
)

// effect judges whether the strategy is one for this kind of effect.
func (r rules) effect() {
	k, ok := r.consumer.Effect.known()
	if !ok || !r.ok("effect", "strategy") {
		return
	}
	if why := k.refused[r.consumer.guard()]; why != "" {
		r.refuse("strategy", fmt.Sprintf("it is no guard for an effect of the kind %s: %s", k.kind, why), k.remedy(r.consumer.guard()))
	}
	if k.stated && !r.set("retention") {
		r.refuse("effect.kind", fmt.Sprintf("with the kind %s it is written down how long copies are recognised, and retention is missing", k.kind),
			"write retention: forever")
	}
}

// remedy is what guards this kind, where g does not.
func (k effectKind) remedy(g guard) string {
	switch {
	case g == byLease:
		return "write kind: external if the other side keeps keys, strategy: marker and statements, or handler.http.effects and answer with them"
	case k.refused[byMarker] == "":
		return "write strategy: marker"
	}
	return "write strategy: lease, and handler: {http: {url: …}}"
}

// whenDown judges whether a consumer may go on while its store is down (C10).
func (r rules) whenDown() {
	c := r.consumer
	if !c.FailOpen || !r.ok("on_store_down", "store", "strategy", "effect") {
		return
	}
	const pause = "write on_store_down: pause"
	kind, declared := c.Effect.known()
	switch {
	case r.store == nil:
	case !r.keyed() && c.Strategy.Lease:
		r.refuse("on_store_down", "a message is received into the store before it is called for, and cannot be while that is down", pause)
	case !r.keyed():
		r.refuse("on_store_down", "the effect is in the store, and nothing can be applied while that is down", pause)
	case !declared:
		r.refuse("on_store_down", "what is applied without a key is applied again with each copy, and nothing says that this does no harm",
			"declare effect: {kind: …, says: \"…\"} of a kind that is idempotent by nature ("+strings.Join(naturalKinds(), ", ")+"), if it is one, or "+pause)
	case kind.refused[byNature] != "":
		r.refuse("on_store_down", fmt.Sprintf("an effect of the kind %s is not idempotent by nature: %s", kind.kind, kind.refused[byNature]), pause)
	}
}

// naturalKinds are the kinds of effects that may be repeated.
func naturalKinds() (kinds []string) {
	for _, k := range effectKinds() {
		if k.refused[byNature] == "" {
			kinds = append(kinds, string(k.kind))
		}
	}
	return kinds
}

// Risk is what a policy has taken upon itself. The set of names is closed.
type Risk struct {
	// Name is a word for monitors, Says the risk to people.
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

// Risks are those that a consumer has declared.
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
	add(c.Identity.Previous != nil && c.Identity.Previous.TrustUnfingerprinted, RiskUncompared, "under the former identity what cannot be compared counts as a copy")
	if s := p.Source(c.From); s != nil && s.Webhook != nil {
		u := s.Webhook.Unsigned
		add(len(u.Headers) > 0, RiskUnsigned, "nobody signed the headers "+strings.Join(u.Headers, ", ")+": "+u.Because)
	}
	if s := p.Source(c.From); s != nil && s.Kafka != nil {
		add(s.Kafka.OnLostRecords == kafka.GoOn, RiskRecordsPassed, "records that the broker has lost are passed by")
	}
	return all
}

// replayable are the kinds of effects whose messages may be replayed unless the file says
// otherwise: a second one does no harm.
func (k effectKind) replayable() bool {
	return k.kind == Projection || k.kind == Cache || k.kind == AuditCopy
}

// replay judges what a replay may do, and whether there may be one where the file does not
// say.
func (r rules) replay(from *Source) {
	c := r.consumer
	if !r.ok("replay", "effect", "handler", "strategy", "retention", "from") {
		return
	}
	out := c.Handler.outside()
	kind, known := c.Effect.known()
	if !r.set("replay.allowed") {
		c.Replay.Allowed = known && kind.replayable() && out == nil && !c.Sends() && !r.keyed() && !from.once()
	}
	switch {
	case c.Replay.Allowed && c.Sends():
		r.refuse("replay.allowed", "it has no source that could be read again: what it sends is written down by others", "remove it, and replay the consumers that write for it")
	case c.Replay.Allowed && from.once():
		r.refuse("replay.allowed", "webhooks cannot be read again: what came is in the inbox", "remove it; semel messages retry runs a row again")
	case c.Replay.Allowed && r.keyed():
		r.refuse("replay.allowed", "store "+c.Store+" keeps keys for a time: it keeps no replays, and an old message would take effect again", "remove it, or use a database as store")
	case !c.Replay.Allowed && r.set("replay") && (r.set("replay.effects") || r.set("replay.max_age") || r.set("replay.looks")):
		r.warn("replay", "nothing is replayed, so that this says nothing", "write allowed: true beside it, or remove it")
	case c.Replay.Allowed:
		r.replayed(from)
	}
}

// replayed judges what a replay that is allowed may do.
func (r rules) replayed(from *Source) {
	c := r.consumer
	out := c.Handler.outside()
	switch {
	case c.Replay.Looks && out == nil:
		r.warn("replay.looks", "this consumer calls nobody who could look", "remove it")
	case c.Replay.Looks && c.Handler.Kafka != nil:
		r.refuse("replay.looks", "a topic looks at nothing: each message would be published", "write effects: real, or remove allowed")
	case c.Replay.Looks && c.Replay.Effects:
		r.warn("replay.looks", "effects are allowed, whoever looks", "remove it, or write effects: none")
	case out != nil && !c.Replay.Effects && !c.Replay.Looks:
		remedy := "write effects: real if a second call does no harm, or looks: true if the endpoint obeys the header semel-effects"
		if c.Handler.Kafka != nil {
			remedy = "write effects: real if a second record does no harm, or remove allowed"
		}
		r.refuse("replay.effects", "with none nothing may happen outside, and this consumer's handler is a call outside, which each replayed message would make", remedy)
	}
	if !r.set("replay.max_age") {
		c.Replay.MaxAge = c.Retention.Keep
		return
	}
	switch keep := c.Retention.Keep; {
	case keep > 0 && c.Replay.MaxAge > keep:
		r.refuse("replay.max_age", fmt.Sprintf("it is %s, and identities are recognised for %s (retention): a message between them would take effect again", legible.Span(c.Replay.MaxAge), legible.Span(keep)),
			"write at most "+legible.Span(keep)+", or raise retention")
	case from.timeless():
		r.refuse("replay.max_age", "messages of the source "+from.Name+" carry no time, by which old ones could be told", "remove it, or have the producer write CloudEvents with a time")
	}
}
