package policy

import (
	"fmt"
	"strings"
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
