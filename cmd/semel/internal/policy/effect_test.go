package policy

import (
	"fmt"
	"strings"
	"testing"
)

// ofKind returns the edits for an effect of kind k, with the retention that some kinds require.
func ofKind(k EffectKind) []string {
	return inConsumer(fmt.Sprintf("effect: {kind: %s, says: it is done twice}", k), "retention: forever")
}

func acceptedEffects() (all []policyCase) {
	for _, k := range effectKinds() {
		edits := ofKind(k.kind)
		if k.unsuitableGuards[byMarker] != "" {
			edits = append(edits, withValidHTTP()...)
		}
		all = append(all, policyCase{name: "an effect: " + string(k.kind), edits: edits})
	}
	return append(all, policyCase{name: "a projection says nothing of retention", edits: inConsumer("effect: {kind: projection, says: nothing changes}")})
}

func refusedEffects() []policyCase {
	natural := []string{"strategy: marker", "strategy: {natural: {because: I say so}}", "balance = balance + :amount", "balance = :amount"}
	byKey := []string{"strategy: marker", "strategy: {business_key: {constraint: payments.id}}"}
	all := []policyCase{
		{name: "an effect of an unknown kind", edits: ofKind("leger"), shape: true},
		{name: "an effect elsewhere by a marker", edits: ofKind(External)},
		{name: "a ledger by calls", edits: append(ofKind(Ledger), withValidHTTP()...)},
		{name: "an effect that says nothing", edits: inConsumer("effect: {kind: cache}"), shape: true},
		{name: "an effect in a word", edits: inConsumer("effect: ledger"), shape: true},
		{name: "a ledger without its retention", edits: inConsumer("effect: {kind: ledger, says: it is booked twice}")},
		{name: "a command by a constraint alone", edits: append(ofKind(Command), byKey...)},
	}
	for _, k := range []EffectKind{Ledger, Intent, Command} {
		all = append(all, policyCase{name: "by nature: " + string(k), edits: append(ofKind(k), natural...)})
	}
	return all
}

func TestTheKindOfEffectDecidesWhichStrategiesAreOffered(t *testing.T) {
	strategies := map[guard][]string{
		byMarker:      nil,
		byBusinessKey: {"strategy: marker", "strategy: {business_key: {constraint: payments.id}}"},
		byNature:      {"strategy: marker", "strategy: {natural: {because: I say so}}", "balance = balance + :amount", "balance = :amount"},
		byLease:       withValidHTTP(),
		byAnswer:      withHTTPKeys(effects),
	}
	refused := 0
	for _, k := range effectKinds() {
		for _, g := range guards() {
			t.Run(fmt.Sprintf("K2a_%s_%s", k.kind, strings.Trim(string(g), "`")), func(t *testing.T) {
				p, faults := parse(policyCase{edits: append(ofKind(k.kind), strategies[g]...)})
				switch offered := k.offers(g); {
				case offered == "yes" && (p == nil || p.Consumers[0].Effect.Kind != k.kind):
					t.Errorf("it is refused: %s", faultLines(faults))
				case offered != "yes" && p != nil:
					t.Errorf("the table says %q, and it is accepted", offered)
				case offered != "yes":
					refused++
				}
			})
		}
	}
	if refused != 8 {
		t.Errorf("%d combinations are refused", refused)
	}
}
