package consumer

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// fits returns the first reason why the store does not fit the policy.
func (c *settings) fits(st any) error {
	if c.mechanism == byKey {
		degree, why := st.(onlyKeys).Durable()
		if degree > keystore.DurableExceptSeconds && c.keys.AllowVolatile == "" { // J4
			return fmt.Errorf("the store of the keys is %v (%s), so that calls may be made twice; make it durable, or say in KeyPolicy.AllowVolatile why that is bearable", degree, why)
		}
	}
	claims, days, kind := claimsRows(st), c.Retention.DailyPartitions, c.limits.PartitionedBy
	var changes []string
	for _, p := range c.inboxSettings(c.mechanism) {
		changes = append(changes, p.change)
	}
	for _, rule := range []struct {
		unfit bool
		says  string
	}{
		{c.Generation != nil && (!hasFeature[admin.Generations](st) || c.mechanism != byTransaction), "Generation is set, and the store keeps none, or handlers call out of its transactions"},
		{c.Version != nil && !hasFeature[admin.Streams](st), "field Version needs a store that keeps streams, and this one does not"},
		{c.OnParked == OnParkedBlock && !hasFeature[admin.Lines](st), "OnParked is block, which needs a store that keeps lines in its inbox, and this one does not"},
		{c.Retention != (RetentionPolicy{}) && !hasFeature[store.Reaper](st), "the store keeps everything for ever, and Retention is set; use a store that can remove, or leave it out"},
		{days && kind == "", "Retention.DailyPartitions is set, and the store keeps no markers by day; give it the one that Dated returns, of a store in PostgreSQL"},
		{kind != "" && !days, "the store keeps markers by day, and Retention.DailyPartitions is not set; set it, with IDTime " + kind},
		{kind != "" && kind != c.Retention.IDTime.String(), fmt.Sprintf("the store keeps markers by the time of ids of the kind %s, and Retention.IDTime is %v", kind, c.Retention.IDTime)},
		{c.PreviousIdentity != nil && !hasFeature[admin.Derivations](st), "the store marks under no former identity, and PreviousIdentity is set"},
		{c.PreviousIdentity != nil && days, "PreviousIdentity is set beside Retention.DailyPartitions: a table of days has the ids of one identity; remove one of them"},
		{c.steps != nil && c.limits.StepOutput == 0, "the store keeps no steps"},
		{c.OnDuplicate != nil && !hasFeature[engine.ResultReader](st), "OnDuplicate is set, and the store keeps no results that it could be given"},
		{c.ReEmitIntents && !hasFeature[admin.Emitter](st), "ReEmitIntents is set, and the store keeps no intents that it could have sent again (admin.Emitter); remove it"},
		{c.mechanism.overRows() && !claims, "the store has no inbox, in which a message could wait for its call"},
		{c.Retry.MaxDelay > c.MaxInMemoryWait && !claims, fmt.Sprintf("Retry.MaxDelay is %v, longer than MaxInMemoryWait, %v, and the store has no inbox in which a message could wait; lower Retry.MaxDelay or raise MaxInMemoryWait", c.Retry.MaxDelay, c.MaxInMemoryWait)},
		{c.Strategy == StrategyInbox && !claims, fmt.Sprintf("Strategy is %v, and the store has no inbox", c.Strategy)},
		// A parked message would be acked but stored nowhere.
		{len(changes) > 0 && !c.rows, "the store has no inbox (store.Inbox), so no message can be parked, which is the default: " + strings.Join(changes, "; ") + "; dead letters need a source that keeps them"},
	} {
		if rule.unfit {
			return fmt.Errorf("%s: %w", rule.says, semel.ErrUnsupported)
		}
	}
	return nil
}

// hasFeature reports whether a store has a feature.
func hasFeature[Feature any](st any) bool {
	_, has := st.(Feature)
	return has
}

// asFeature returns a store as one of its features, or nil if the store does not have the feature.
func asFeature[Feature any](st any) Feature {
	feature, _ := st.(Feature)
	return feature
}

// onParked returns Config.OnParked, with OnParkedDefault replaced by the default of the store.
func (c *settings) onParked(store any) OnParked {
	if c.rows && hasFeature[admin.Lines](store) && c.Lanes == LanesKey && c.Strategy.marks() && c.Version == nil {
		return OnParkedBlock
	}
	return OnParkedSkip
}

// keepsRows reports whether a store has an inbox.
func keepsRows(st any) bool { return hasFeature[store.Inbox](st) }

// claimsRows reports whether a store has an inbox whose rows can be claimed.
func claimsRows(st any) bool { return hasFeature[store.Leases](st) && keepsRows(st) }

// limitsOf returns the limits of a store. For key stores, limitsOf returns no limits, even if the key store
// is a database.
func limitsOf(w mechanism, st any) store.Limits {
	if w == byKey {
		return store.Limits{}
	}
	if limited, has := st.(interface{ Limits() store.Limits }); has {
		return limited.Limits()
	}
	return store.Limits{}
}
