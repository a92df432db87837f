package consumer

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/store"
)

// settings contain a checked Config with its defaults, and values that the constructor of the consumer
// derives from the Config. settings do not change while the consumer runs.
type settings struct {
	Config
	// public is Config.Name without the generation.
	public string
	// rules are the rules for reading deliveries.
	rules delivery.Rules
	// mechanism says which method makes each effect happen only once. The field keys configures the leased keys if
	// mechanism is byKey.
	mechanism mechanism
	keys      KeyPolicy
	// guard calls functions of users, sources and stores.
	guard guard.Guard
	// steps contains the names of the steps; nil if the handler has no steps.
	steps []string
	// run are the options of the runner.
	run runner.Options
	// retention is how long markers are kept.
	retention *upkeep.Retention
	// rows reports whether the store has an inbox.
	rows bool
	// limits are the store's limits. Without an Identity, limits.FitIdentity is not set.
	limits store.Limits
}

// needs contains the arguments of a consumer's constructor other than the Config.
type needs struct {
	mechanism mechanism
	// store is nil if the caller passed none.
	store any
	keys  KeyPolicy
	// noHandler is the error if the handler is incomplete, or nil if the handler is complete.
	noHandler error
	// steps contains the names of the steps; nil if the handler has no steps.
	steps []string
}

// needsOf returns the needs for a handler, a mechanism and a store. If the handler is incomplete, the field noHandler
// of the result is the error.
func needsOf[Tx any](h *engine.Handler[Tx], w mechanism, store any) needs {
	n := needs{mechanism: w, store: store}
	if h.One == nil && h.All == nil && len(h.Steps) == 0 {
		n.noHandler = errors.New("the handler is nil; pass a function")
	}
	for i := range h.Steps {
		n.steps = append(n.steps, h.Steps[i].Name)
		if h.Steps[i].Run == nil {
			n.noHandler = fmt.Errorf("the step %q has no Run; give it a function", h.Steps[i].Name)
		}
	}
	return n
}

// settings sets the defaults, checks the policy and returns the settings. The error lists all faults of the
// policy or, if the policy has no faults, the first reason why the store does not fit the policy.
func (c Config) settings(n needs, plans []faults.Plan) (*settings, error) {
	c.defaults()
	err := errors.Join(c.check(n), n.noHandler)
	if n.store == nil {
		err = errors.Join(err, errors.New("the store is nil; pass an opened store"))
	}
	setDefault(&c.Provider.Window, defaultWindow) // after the check, because without calls it may be shorter than Timeout
	s := &settings{Config: c, public: c.Name, mechanism: n.mechanism, keys: n.keys, guard: guard.Guard{Plan: faults.Of(plans...)}, steps: n.steps, rows: keepsRows(n.store), limits: limitsOf(n.mechanism, n.store)}
	if err == nil {
		err = s.fits(n.store)
	}
	if err != nil {
		return nil, fmt.Errorf("semel: consumer %q: %w", c.Name, err)
	}
	s.resolve(n.store)
	return s, nil
}

// resolve sets the fields that depend on the policy and the store.
func (c *settings) resolve(st any) {
	if c.Generation != nil {
		c.Name = admin.GenerationName(c.public, c.Generation.Number)
	}
	c.guard.Consumer, c.guard.Logger = c.Name, c.Logger
	setDefault(&c.guard.Plan.Seed, rand.Uint64())
	if c.OnParked == onParkedDefault {
		c.OnParked = c.onParked(st)
	}
	if c.Identity == nil {
		c.limits.FitIdentity = nil
	}
	c.rules = c.Config.deliveryRules()
	c.rules.Guard, c.rules.FitIdentity = c.guard, c.limits.FitIdentity
	c.rules.Types = delivery.NewTypeWatch(len(c.Filter.Types) > 0, c.warnTypeless)
	c.retention = &upkeep.Retention{
		Guard: c.guard, Keep: c.Retention.Keep, Bodies: c.Retention.Bodies, Delay: c.Retention.Delay, Retries: c.ladder(),
		IDTime: c.Retention.IDTime, DailyPartitions: c.Retention.DailyPartitions, Off: c.Retention.Off,
	}
	switch c.mechanism {
	case byTransaction:
		if most := c.limits.Batch; most > 0 && most < c.Batch.MaxSize {
			c.Logger.Warn("the store limits the batch, because it cannot refuse a commit of the handler's own; its constructor's documentation says how it could", "consumer", c.Name, "most", most)
			c.Batch.MaxSize = most
		}
	case byKey:
		c.Batch.MaxSize = 1
	case byLookup:
		c.Provider.Window = WindowAlways // a call that changes nothing may be repeated at any time
	}
	c.run = c.runOptions()
}

// mechanism is the method by which each effect of a consumer happens once. Each constructor has its own mechanism. The
// mechanism determines how the runner processes a batch.
type mechanism uint8

const (
	// byTransaction: the marker and the handler's writes are committed together (New, NewBatch, NewSteps).
	byTransaction mechanism = iota
	// byClaim: the inbox row is claimed, the handler calls another system, and the claim ends (NewLeased,
	// NewLeasedSteps).
	byClaim
	// byAnswer: like byClaim, but the claim ends in the transaction in which the answer of the call is
	// applied (NewCalling with StrategyInbox).
	byAnswer
	// byLookup: the marker is looked up, the handler calls another system, and the message is marked in the
	// transaction in which the answer is applied (NewCalling with StrategyMarker).
	byLookup
	// byKey: a leased key is claimed, the handler calls another system, and the key is completed (NewKeyed).
	byKey
)

// overRows reports whether handlers call other systems for messages of the store's inbox. A batch of a consumer whose
// handlers call other systems has one message.
func (w mechanism) overRows() bool { return w == byClaim || w == byAnswer || w == byLookup }

// deliveryRules returns the rules for reading deliveries, except the rules that depend on the store.
func (c *Config) deliveryRules() delivery.Rules {
	r := delivery.Rules{
		Identity: c.Identity, Fingerprint: c.Fingerprint, Filter: delivery.Filter(c.Filter), SkipFiltered: c.OnFiltered == OnFilteredSkip,
		MaxBody: c.MaxBody, Replay: c.Replay, ByKey: c.Lanes == LanesKey,
	}
	if c.PreviousIdentity != nil {
		r.Previous = c.PreviousIdentity.Identity
	}
	if c.Version != nil {
		r.Version = c.Version.By
	}
	if c.Type != "" {
		kind, _ := selectors.Parse(c.Type)
		r.Type = &kind
	}
	return r
}

func (c *settings) warnTypeless(messages int) {
	c.Logger.Warn("types of messages are asked for, and no message has had one; if producers write the type in another place, name it: type: header:NAME or body:/POINTER in a policy, Config.Type in Go",
		"consumer", c.Name, "messages", messages)
}

// Takes reports whether Config.Filter selects a message. The parameter refused means that the source could not read the
// message completely. A message that was not read completely can be excluded by a type or header that could be read,
// but not by a missing type or header.
func (c *Config) Takes(m *semel.Message, refused bool) bool {
	rules := c.deliveryRules()
	return rules.Takes(m, refused)
}
