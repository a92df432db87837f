package consumer

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/steplimit"
)

// noInbox and noKeyInbox are the reasons why a consumer's messages cannot wait in the store.
const (
	noInbox    = "this strategy writes no markers, and only messages with a marker can wait in the store"
	noKeyInbox = "with NewKeyed there is no inbox"
)

// checkMechanism reports fields that do not fit the consumer's kind of handler.
func (c *Config) checkMechanism(n needs, f *faultList) {
	keyed, waits, least := n.mechanism == byKey, noInbox, max(leastKeep, c.Inbox.Lease)
	if keyed {
		waits = noKeyInbox
		for _, p := range c.inboxSettings(n.mechanism) {
			f.addIf(true, p.field+" Strategy Handler", noKeyInbox+", so nothing can be parked; "+p.change)
		}
	}
	f.addIf(keyed && c.Strategy != StrategyMarker, "Strategy Handler", "with NewKeyed it is %v, and must be %v: the key is what recognises a copy", c.Strategy, StrategyMarker)
	f.addIf(keyed && n.keys.Keep < least, "KeyPolicy.Keep Inbox.Lease Strategy", "is %s, and must be at least %s, and longer than a copy can take to come", legible.Span(n.keys.Keep), legible.Span(least))
	f.addIf(keyed && n.keys.Delay < 0, "KeyPolicy.Delay", "is %v; it is a time, or 0", n.keys.Delay)
	f.addIf(c.Retry.MaxDelay > c.MaxInMemoryWait && (keyed || !c.Strategy.marks()), "Retry.MaxDelay MaxInMemoryWait Strategy",
		"a wait of %s is longer than MaxInMemoryWait, %s, and cannot be kept: "+waits+"; write at most %[2]s, or raise MaxInMemoryWait", legible.Span(c.Retry.MaxDelay), legible.Span(c.MaxInMemoryWait))
}

// checkCanary reports a Canary whose rollback would not undo the first run of a handler.
func (c *Config) checkCanary(w mechanism, f *faultList) {
	if c.Canary == 0 {
		return
	}
	switch {
	case f.addIf(w != byTransaction, "Canary Strategy Handler", "it runs handlers twice, but these handlers call other systems, and a rollback cannot undo a call; remove it"):
	case f.addIf(!c.Strategy.marks(), "Canary Strategy", "it runs handlers twice, but with the Strategy %v no marker protects the effect; remove it, or write Strategy: StrategyMarker", c.Strategy):
	}
}

// checkCalls reports fields that do not fit a handler which makes calls, and a Provider that is not called.
func (c *Config) checkCalls(w mechanism, f *faultList) {
	p, claims := &c.Provider, w == byClaim || w == byAnswer
	called := p.Lookup != nil || p.Window != 0 && p.Window != defaultWindow || p.OnUnknown != ActionPark
	f.addIf(p.OnUnknown != ActionPark && p.OnUnknown != ActionDiscard, "Provider.OnUnknown", "is %v; it is %v or %v", p.OnUnknown, ActionPark, ActionDiscard)
	f.addIf(p.Window < 0 && p.Window != WindowNever, "Provider.Window", "is %v; it is a time, or WindowAlways, or WindowNever", p.Window)
	f.addIf(p.Window > 0 && p.Window <= c.Timeout, "Provider.Window Timeout", "is %s, and must be longer than Timeout, %s: the other side may have forgotten a key when a late call arrives; raise it if the other side remembers keys for longer, or lower Timeout", legible.Span(p.Window), legible.Span(c.Timeout))
	f.addIf(w == byTransaction && called, "Provider Handler", "nobody is called: it is for NewLeased, NewKeyed and NewCalling; remove it")
	f.addIf(p.Lookup != nil && (w == byAnswer || w == byLookup), "Provider.Lookup", "with NewCalling it could say that a call took effect, but not what it answered, which apply needs; remove it")
	f.addIf(claims && c.Strategy != StrategyInbox, "Strategy Handler", "is %v, but handlers call other systems, and a call is not part of a transaction in which a marker could be; write Strategy: StrategyInbox", c.Strategy)
	f.addIf(claims && c.Source != nil && !c.AckOnReceipt, "AckOnReceipt Strategy Handler", "is not set, but with calls a message is called for only when it is claimed; write AckOnReceipt: true")
	f.addIf(c.Version != nil && w != byTransaction, "Version Strategy Handler", "a stream's version advances in the transaction of the effect, but a call is not part of a transaction; remove it")
	f.addIf(c.PreviousIdentity != nil && w == byLookup, "PreviousIdentity Strategy Handler", "messages with the same previous identity must not share a transaction, but those of NewCalling with StrategyMarker do; remove it, or use StrategyInbox while the identity changes")
	f.addIf(c.ReEmitIntents && w == byClaim, "ReEmitIntents Strategy Handler", "with NewLeased a handler has no transaction in which it could write intents; remove it")
}

// inboxSetting is a field whose value needs an inbox, and the change that makes the field fit a store without an inbox.
type inboxSetting struct{ field, change string }

// inboxSettings returns the fields that need an inbox.
func (c *Config) inboxSettings(w mechanism) (all []inboxSetting) {
	add := func(parks bool, field, change string) {
		if parks {
			all = append(all, inboxSetting{field, change})
		}
	}
	add(c.Retry.OnExhausted == ActionPark, "Retry.OnExhausted", "set Retry.OnExhausted to ActionHalt or ActionDeadLetter")
	add(c.OnConflict == ActionPark, "OnConflict", "set OnConflict to ActionHalt, ActionKeepFirst or ActionDeadLetter")
	add(c.OnBadIdentity == ActionPark, "OnBadIdentity", "set OnBadIdentity to ActionHalt or ActionDeadLetter")
	// With NewKeyed, a failed precondition ends as Retry.OnExhausted says, because few handlers of NewKeyed return a
	// failed precondition.
	add(c.OnPrecondition == ActionPark && w != byKey, "OnPrecondition", "set OnPrecondition to ActionRetry, ActionDiscard or ActionDeadLetter")
	add(c.OnFiltered == OnFilteredPark, "OnFiltered", "set OnFiltered to OnFilteredSkip or OnFilteredDeadLetter")
	add(c.Retention.OnExpired == ActionPark && c.Retention.Keep > 0, "Retention.OnExpired", "set Retention.OnExpired to ActionHalt, ActionDeadLetter or ActionDiscard")
	add(c.OnParked == OnParkedBlock, "OnParked", "set OnParked to OnParkedSkip")
	add(c.Version != nil && w != byKey, "Version", "remove Version: a version waits in the inbox for the one before it")
	return all
}

// checkSteps reports faults of a handler with steps. The parameter steps contains
// the names of the steps; nil if the handler has no steps.
func (c *Config) checkSteps(steps []string, f *faultList) {
	if steps == nil {
		return
	}
	switch {
	case f.addIf(c.Strategy != StrategyInbox, "Strategy Steps", "is %v, but between two steps a message waits in its inbox row; write Strategy: StrategyInbox and AckOnReceipt: true", c.Strategy):
	case f.addIf(c.Source != nil && !c.AckOnReceipt, "AckOnReceipt Strategy Steps", "with steps the message is stored before its first step, and any process can continue it: the broker would otherwise wait for the slowest step; write AckOnReceipt: true"):
	}
	f.addIf(len(steps) > steplimit.Steps, "Steps", "there are %d steps, but a message has at most %d; join steps", len(steps), steplimit.Steps)
	for i, name := range steps {
		at := fmt.Sprintf("Steps[%d].Name Steps", i)
		unprintable := !utf8.ValidString(name) || slices.ContainsFunc([]rune(name), func(r rune) bool { return !unicode.IsPrint(r) })
		f.addIf(name == "" || len(name) > steplimit.Name || unprintable, at, "the name %q must be 1 to %d bytes of printable UTF-8", name, steplimit.Name)
		f.addIf(slices.Contains(steps[:i], name), at, "two steps are named %q, but rows identify steps by name; use different names", name)
	}
}
