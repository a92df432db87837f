package policy

import (
	"fmt"
	"strings"

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

// EffectTable is the table of kinds as Markdown, for docs/policy.md.
func EffectTable() string {
	var b strings.Builder
	b.WriteString("| `kind` | what it is |")
	for _, g := range guards() {
		fmt.Fprintf(&b, " %s |", g)
	}
	b.WriteString(" `retention` |\n|---|---|" + strings.Repeat("---|", len(guards())) + "---|\n")
	for _, k := range effectKinds() {
		fmt.Fprintf(&b, "| `%s` | %s |", k.kind, k.is)
		for _, g := range guards() {
			fmt.Fprintf(&b, " %s |", k.offers(g))
		}
		fmt.Fprintf(&b, " %s |\n", map[bool]string{true: "must be written", false: ""}[k.stated])
	}
	return b.String()
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

func (k effectKind) offers(g guard) string {
	switch {
	case k.refused[g] != "":
		return "refused: " + k.refused[g]
	}
	return "yes"
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
