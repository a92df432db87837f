package consumer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// fits returns the first reason why the store does not fit the policy.
func (c *settings) fits(store any) error {
	for _, check := range []func(store any) error{
		c.fitsGeneration, c.fitsVersions, c.fitsLines, c.fitsRetention, c.fitsFormer, c.fitsSteps, c.fitsDuplicates, c.fitsReEmission, c.fitsWay, c.fitsWaits, c.fitsParking,
	} {
		if err := check(store); err != nil {
			return err
		}
	}
	return nil
}

// fitsLookups returns an error if policy and store do not fit NewCalling with StrategyMarker.
func (c *settings) fitsLookups(st any) error {
	switch {
	case !claimsRows(st):
		return fmt.Errorf("the store has no inbox, in which a message could wait to be called for again: %w", semel.ErrUnsupported)
	case c.PreviousIdentity != nil:
		return fmt.Errorf("PreviousIdentity is set: messages that share a former identity never share a transaction, and those of NewCalling with %v do; use %v while the identity changes: %w", StrategyMarker, StrategyInbox, semel.ErrUnsupported)
	}
	return nil
}

// fitsReEmission returns an error if ReEmitIntents is set but intents cannot be sent again.
func (c *settings) fitsReEmission(store any) error {
	if !c.ReEmitIntents {
		return nil
	}
	if c.way == byClaim {
		return errors.New("ReEmitIntents is set, and with NewLeased a handler has no transaction in which it could write intents; remove it")
	}
	if _, can := store.(admin.Emitter); !can {
		return fmt.Errorf("ReEmitIntents is set, and the store keeps no intents that it could have sent again (admin.Emitter); remove it: %w", semel.ErrUnsupported)
	}
	return nil
}

// fitsDuplicates returns an error if OnDuplicate is set but cannot be called.
func (c *settings) fitsDuplicates(st any) error {
	if c.OnDuplicate == nil {
		return nil
	}
	if !c.Strategy.marks() {
		return fmt.Errorf("OnDuplicate is set, and with the Strategy %v no marker tells which messages are duplicates; remove it", c.Strategy)
	}
	if _, reads := st.(engine.ResultReader); !reads {
		return fmt.Errorf("OnDuplicate is set, and the store keeps no results that it could be given: %w", semel.ErrUnsupported)
	}
	return nil
}

// fitsGeneration returns an error if the store cannot check the generation of a batch.
func (c *settings) fitsGeneration(store any) error {
	if c.Generation == nil {
		return nil
	}
	if _, able := store.(admin.Generations); !able || c.way != byTransaction {
		return fmt.Errorf("Generation is set, and the store keeps none, or handlers call out of its transactions: %w", semel.ErrUnsupported)
	}
	return nil
}

// fitsKeys returns an error if policy and store do not fit NewKeyed.
func (c *settings) fitsKeys(st any) error {
	switch {
	case c.Strategy != StrategyMarker:
		return fmt.Errorf("with NewKeyed the Strategy is %v, and must be %v: the key is what recognises a copy", c.Strategy, StrategyMarker)
	case c.keys.Keep < max(leastKeep, c.Inbox.Lease):
		return fmt.Errorf("KeyPolicy.Keep is %v, and must be at least %v, and longer than a copy can take to come", c.keys.Keep, max(leastKeep, c.Inbox.Lease))
	case c.keys.Delay < 0:
		return fmt.Errorf("KeyPolicy.Delay is %v; it is a time, or 0", c.keys.Delay)
	}
	if degree, why := st.(onlyKeys).Durable(); degree > keystore.DurableExceptSeconds && c.keys.AllowVolatile == "" { // J4
		return fmt.Errorf("the store of the keys is %v (%s), so that calls may be made twice; make it durable, or say in KeyPolicy.AllowVolatile why that is bearable", degree, why)
	}
	return nil
}

// fitsClaims returns an error if policy and store do not fit NewLeased, or NewCalling with StrategyInbox.
func (c *settings) fitsClaims(st any) error {
	switch {
	case !claimsRows(st):
		return fmt.Errorf("the store has no inbox, which claims are of: %w", semel.ErrUnsupported)
	case c.Strategy != StrategyInbox:
		return fmt.Errorf("handlers call out and the Strategy is %v; it must be %v: calls are no part of a transaction that a marker could be in", c.Strategy, StrategyInbox)
	case c.Source != nil && !c.AckOnReceipt:
		return errors.New("handlers call out, there is a Source, and AckOnReceipt is not set; set it: a message is called for only when it is claimed")
	}
	return nil
}

// fitsLines returns an error if OnParkedBlock is set and the store cannot make messages of a key or partition
// wait for one another.
func (c *settings) fitsLines(store any) error {
	if c.OnParked == OnParkedBlock && linesOf(store) == nil {
		return fmt.Errorf("OnParked is block, which needs a store that keeps lines in its inbox, and this one does not: %w", semel.ErrUnsupported)
	}
	return nil
}

// onParked returns Config.OnParked, with OnParkedDefault replaced by the default of the store.
func (c *settings) onParked(store any) OnParked {
	if c.rows && linesOf(store) != nil && c.Lanes == LanesKey && c.Strategy.marks() && c.Version == nil {
		return OnParkedBlock
	}
	return OnParkedSkip
}

// linesOf returns a store as admin.Lines, or nil if the store does not implement admin.Lines.
func linesOf(st any) admin.Lines {
	lines, _ := st.(admin.Lines)
	return lines
}

// keepsRows reports whether a store has an inbox. A consumer without an inbox must not park messages: a
// parked message would be acked but stored nowhere.
func keepsRows(st any) bool {
	_, keeps := st.(store.Inbox)
	return keeps
}

// claimsRows reports whether a store has an inbox whose rows can be claimed.
func claimsRows(st any) bool {
	_, claims := st.(store.Leases)
	return claims && keepsRows(st)
}

// fitsParking returns an error if the store has no inbox and fields of the policy need an inbox. The error lists the
// fields that need an inbox.
func (c *settings) fitsParking(any) error {
	changes := c.withoutParking()
	if c.rows || len(changes) == 0 {
		return nil
	}
	where := "the store has no inbox (store.Inbox)"
	if c.way == byKey {
		where = "with NewKeyed there is no inbox"
	}
	return fmt.Errorf("%s, so no message can be parked, which is the default: %s; dead letters need a source that keeps them: %w", where, strings.Join(changes, "; "), semel.ErrUnsupported)
}

// withoutParking returns the changes that the policy needs if the store has no inbox.
func (c *settings) withoutParking() (changes []string) {
	for _, f := range []struct {
		parks  bool
		change string
	}{
		{c.Retry.OnExhausted == ActionPark, "set Retry.OnExhausted to ActionHalt or ActionDeadLetter"},
		{c.OnConflict == ActionPark, "set OnConflict to ActionHalt, ActionDeadLetter or ActionKeepFirst"},
		{c.OnBadIdentity == ActionPark, "set OnBadIdentity to ActionHalt or ActionDeadLetter"},
		// With NewKeyed, a failed precondition ends as Retry.OnExhausted says, because few handlers of
		// NewKeyed return a failed precondition.
		{c.OnPrecondition == ActionPark && c.way != byKey, "set OnPrecondition to ActionRetry, ActionDiscard or ActionDeadLetter"},
		{c.OnFiltered == OnFilteredPark, "set OnFiltered to OnFilteredSkip or OnFilteredDeadLetter"},
		{c.Retention.OnExpired == ActionPark && c.Retention.Keep > 0, "set Retention.OnExpired to ActionHalt, ActionDeadLetter or ActionDiscard"},
		{c.OnParked == OnParkedBlock, "set OnParked to OnParkedSkip"},
		{c.Version != nil, "remove Version: a version waits in the inbox for the one before it"},
	} {
		if f.parks {
			changes = append(changes, f.change)
		}
	}
	return changes
}

// fitsFormer returns an error if the store cannot mark messages under a previous identity.
func (c *settings) fitsFormer(store any) error {
	switch {
	case c.PreviousIdentity == nil:
		return nil
	case derivationsOf(store) == nil:
		return fmt.Errorf("the store marks under no former identity, and PreviousIdentity is set: %w", semel.ErrUnsupported)
	case c.Retention.DailyPartitions:
		return fmt.Errorf("PreviousIdentity is set beside Retention.DailyPartitions: a table of days has the ids of one identity; remove one of them: %w", semel.ErrUnsupported)
	}
	return nil
}

// derivationsOf returns a store as admin.Derivations, or nil if the store does not implement
// admin.Derivations.
func derivationsOf(store any) admin.Derivations {
	derivations, _ := store.(admin.Derivations)
	return derivations
}

// fitsRetention returns an error if the store cannot provide the retention.
func (c *Config) fitsRetention(st any) error {
	if _, able := st.(store.Reaper); !able && c.Retention != (RetentionPolicy{}) {
		return fmt.Errorf("the store keeps everything for ever, and Retention is set; use a store that can remove, or leave it out: %w", semel.ErrUnsupported)
	}
	return c.fitsDays(st)
}

// fitsDays returns an error if only one of policy and store has daily partitions, or if policy and store have different
// kinds of ids.
func (c *Config) fitsDays(st any) error {
	kind := limitsOf(byTransaction, st).PartitionedBy
	switch r := &c.Retention; {
	case r.DailyPartitions && kind == "":
		return fmt.Errorf("Retention.DailyPartitions is set, and the store keeps no markers by day; give it the one that Dated returns, of a store in PostgreSQL: %w", semel.ErrUnsupported)
	case kind != "" && !r.DailyPartitions:
		return fmt.Errorf("the store keeps markers by day, and Retention.DailyPartitions is not set; set it, with IDTime %s: %w", kind, semel.ErrUnsupported)
	case kind != "" && kind != r.IDTime.String():
		return fmt.Errorf("the store keeps markers by the time of ids of the kind %s, and Retention.IDTime is %v: %w", kind, r.IDTime, semel.ErrUnsupported)
	}
	return nil
}

// fitsWay returns an error if policy and store do not fit the consumer's kind of handler.
func (c *settings) fitsWay(store any) error {
	switch c.way {
	case byClaim, byAnswer:
		return c.fitsClaims(store)
	case byLookup:
		return c.fitsLookups(store)
	case byKey:
		return c.fitsKeys(store)
	}
	if c.Provider.Lookup != nil || c.Provider.Window != defaultWindow || c.Provider.OnUnknown != ActionPark {
		return errors.New("Provider is set, and nobody is called: it is for NewLeased, NewKeyed and NewCalling; remove it")
	}
	return nil
}

// fitsWaits returns an error if delays need an inbox and the store has none.
func (c *settings) fitsWaits(st any) error {
	if claimsRows(st) {
		return nil
	}
	switch {
	case c.Retry.MaxDelay > c.MaxInMemoryWait:
		return fmt.Errorf("Retry.MaxDelay is %v, longer than MaxInMemoryWait, %v, and the store has no inbox in which a message could wait; lower Retry.MaxDelay or raise MaxInMemoryWait: %w", c.Retry.MaxDelay, c.MaxInMemoryWait, semel.ErrUnsupported)
	case c.Strategy == StrategyInbox:
		return fmt.Errorf("Strategy is %v, and the store has no inbox: %w", c.Strategy, semel.ErrUnsupported)
	}
	return nil
}

// limitsOf returns the limits of a store. For key stores, limitsOf returns no limits, even if the key store
// is a database.
func limitsOf(w way, st any) store.Limits {
	if w == byKey {
		return store.Limits{}
	}
	if limited, has := st.(interface{ Limits() store.Limits }); has {
		return limited.Limits()
	}
	return store.Limits{}
}

// fitsSteps returns an error if policy and store do not fit a handler with steps, or if the steps have
// faults.
func (c *settings) fitsSteps(any) error {
	switch {
	case c.steps == nil:
		return nil
	case c.limits.StepOutput == 0:
		return fmt.Errorf("the store keeps no steps: %w", semel.ErrUnsupported)
	case c.Strategy != StrategyInbox:
		return fmt.Errorf("with steps the Strategy is %v, and must be %v: between two steps a message waits in its row", c.Strategy, StrategyInbox)
	case c.Source != nil && !c.AckOnReceipt:
		return errors.New("with steps and a Source, AckOnReceipt must be set: from the first step on the message is worked on in its row, by whoever claims it, and a broker that kept it as well would have to let go of it before the last step wherever one waits for longer than MaxInMemoryWait")
	case len(c.steps) > steplimit.Steps:
		return fmt.Errorf("there are %d steps; a message has at most %d", len(c.steps), steplimit.Steps)
	}
	for i, name := range c.steps {
		switch {
		case name == "" || len(name) > steplimit.Name || !utf8.ValidString(name) || slices.ContainsFunc([]rune(name), func(r rune) bool { return !unicode.IsPrint(r) }):
			return fmt.Errorf("the name %q of a step must be 1 to %d bytes of printable UTF-8", name, steplimit.Name)
		case slices.Contains(c.steps[:i], name):
			return fmt.Errorf("two steps are named %q; a row knows a step by its name", name)
		}
	}
	return nil
}

// fitsVersions returns an error if Version is set but the store cannot store versions.
func (c *settings) fitsVersions(store any) error {
	if c.Version == nil {
		return nil
	}
	if c.way != byTransaction {
		return fmt.Errorf("field Version needs a transaction, in which a stream moves with the effect, and handlers that call out have none: %w", semel.ErrUnsupported)
	}
	if _, keeps := store.(admin.Streams); !keeps {
		return fmt.Errorf("field Version needs a store that keeps streams, and this one does not: %w", semel.ErrUnsupported)
	}
	return nil
}
