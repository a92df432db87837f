package policy

// Effect is what a consumer does to the business, in its author's words.
type Effect struct {
	Kind EffectKind
	// Says is a sentence for those who decide whether it may be done again.
	Says string
}

// EffectKind is a kind of business effect; its text is the word of the policy.
type EffectKind string

// The kinds.
const (
	Projection EffectKind = "projection"
	Cache      EffectKind = "cache"
	Entity     EffectKind = "entity"
	AuditCopy  EffectKind = "audit_copy"
	Ledger     EffectKind = "ledger"
	Intent     EffectKind = "intent"
	Command    EffectKind = "command"
	External   EffectKind = "external"
)

// effectKind is what is known of a kind. The rules judge by it, and the table of
// docs/policy.md is made of it.
type effectKind struct {
	kind EffectKind
	// is says what it is.
	is string
	// refused says, by guard, why it is no guard for this kind.
	refused map[guard]string
	// stated: how long copies are recognised is written down, not left to the default.
	stated bool
}

// elsewhere is why nothing in a transaction guards what is done outside.
const elsewhere = "what is done outside is in no transaction, and happens as often as its handler runs"

// guard is what makes an effect happen once; a strategy has one or two of them.
type guard string

const (
	byMarker      guard = "`marker`, `inbox`"
	byBusinessKey guard = "`business_key` alone"
	byNature      guard = "`natural`"
	byLease       guard = "`lease`"
	// byAnswer: the call may happen again, what its answer names is done once.
	byAnswer guard = "`effects` in an answer"
)

func guards() []guard { return []guard{byMarker, byBusinessKey, byNature, byLease, byAnswer} }

// guard is the one that counts: beside a marker, a constraint is a second one.
func (c *Consumer) guard() guard {
	s := c.Strategy
	switch {
	case (s.Lease || s.Marks()) && c.Handler.HTTP != nil && c.Handler.HTTP.Effects != nil:
		return byAnswer
	case s.Lease:
		return byLease
	case s.Marks():
		return byMarker
	case s.BusinessKey != nil:
		return byBusinessKey
	}
	return byNature
}

func effectKinds() []effectKind {
	return []effectKind{
		{kind: Projection, is: "state that can be made anew from the messages: a read model, a search index"},
		{kind: Cache, is: "a copy that may be thrown away"},
		{kind: Entity, is: "the state of a business object, which a message sets"},
		{kind: AuditCopy, is: "each message is kept, as it came"},
		{kind: Ledger, is: "each message adds: an entry, an amount, a stock", stated: true,
			refused: map[guard]string{byNature: "each copy adds to a ledger",
				byLease: "a call whose answer was lost is made again, and adds again unless the other side keeps its key"}},
		{kind: Intent, is: "a row that orders something to be done elsewhere", stated: true,
			refused: map[guard]string{byNature: "a second row orders it a second time"}},
		{kind: Command, is: "a request, which may be refused", stated: true,
			refused: map[guard]string{
				byNature:      "the state that refused a command may have changed when its copy comes, which would then be obeyed",
				byBusinessKey: "a command that was refused leaves nothing in the table, and its copy may then be obeyed",
			}},
		{kind: External, is: "something outside of the database: a payment, a mail", stated: true,
			refused: map[guard]string{
				byMarker:      elsewhere,
				byBusinessKey: elsewhere,
				byNature:      "each copy does it again",
			}},
	}
}

// known is what is known of the kind of an effect, or false for no kind.
func (e *Effect) known() (effectKind, bool) {
	if e != nil {
		for _, k := range effectKinds() {
			if k.kind == e.Kind {
				return k, true
			}
		}
	}
	return effectKind{}, false
}
