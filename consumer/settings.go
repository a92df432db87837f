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
	"github.com/semel-go/semel/store"
)

// settings are a checked Config with its defaults and with what the constructor of the consumer
// derives from it. They do not change while the consumer runs.
type settings struct {
	Config
	// public is Config.Name without the generation.
	public string
	// rules say how messages are recognised.
	rules delivery.Rules
	// way is what makes effects happen once, and keys with byKey how keys are kept.
	way  way
	keys KeyPolicy
	// guard calls functions of others.
	guard guard.Guard
	// steps are the names of the steps, nil without.
	steps []string
	// run are the options of the runner.
	run runner.Options
	// retention is how long markers are kept.
	retention *upkeep.Retention
	// rows: the store has an inbox.
	rows bool
	// limits are those of the store, without FitIdentity if there is no Identity.
	limits store.Limits
}

// needs is what a constructor wants a policy for.
type needs struct {
	way way
	// store is nil if the user gave none.
	store any
	keys  KeyPolicy
	// noHandler says what is missing of the handler; nil if nothing is.
	noHandler error
	// steps are the names of the steps, nil without.
	steps []string
}

// needsOf returns what a consumer with this handler wants its policy for.
func needsOf[Tx any](h *engine.Handler[Tx], w way, store any) needs {
	n := needs{way: w, store: store}
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

// settings fills in the defaults. It reports every fault of the policy, or, if there is none, the
// first reason why the store does not fit the policy.
func (c Config) settings(n needs, plans []faults.Plan) (*settings, error) {
	c.defaults()
	err := errors.Join(c.check(), n.noHandler)
	if n.store == nil {
		err = errors.Join(err, errors.New("the store is nil; pass an opened store"))
	}
	setDefault(&c.Provider.Window, defaultWindow) // after the check: it may be shorter than Timeout where nobody is called
	s := &settings{Config: c, public: c.Name, way: n.way, keys: n.keys, guard: guard.Guard{Plan: faults.Of(plans...)}, steps: n.steps, rows: keepsRows(n.store), limits: limitsOf(n.way, n.store)}
	if err == nil {
		err = s.fits(n.store)
	}
	if err != nil {
		return nil, fmt.Errorf("semel: consumer %q: %w", c.Name, err)
	}
	s.resolve(n.store)
	return s, nil
}

// resolve sets what follows from the policy and the store.
func (c *settings) resolve(st any) {
	if c.Generation != nil {
		c.Name = admin.GenerationName(c.public, c.Generation.Number)
	}
	c.guard.Consumer, c.guard.Logger = c.Name, c.Logger
	setDefault(&c.guard.Plan.Seed, rand.Uint64())
	if c.OnParked == OnParkedDefault {
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
	switch c.way {
	case byTransaction:
		if most := c.limits.Batch; most > 0 && most < c.Batch.MaxSize {
			c.Logger.Warn("the store limits the batch, because it cannot refuse a commit of the handler's own; its constructor's documentation says how it could", "consumer", c.Name, "most", most)
			c.Batch.MaxSize = most
		}
	case byKey:
		c.Batch.MaxSize = 1
	case byLookup:
		c.Provider.Window = WindowAlways // a row that is claimed is called for as often as it takes
	}
	c.run = c.runOptions()
}

// fits reports the first reason why the store does not fit the policy.
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

// fitsWay reports why policy and store do not fit the way in which effects happen once.
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

// fitsWaits reports waits that need an inbox on a store without one.
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

// limitsOf returns the limits of a store. Keys have none, also those of a database.
func limitsOf(w way, st any) store.Limits {
	if w == byKey {
		return store.Limits{}
	}
	if limited, has := st.(interface{ Limits() store.Limits }); has {
		return limited.Limits()
	}
	return store.Limits{}
}

// check reports every fault of the policy, whatever the store is.
func (c *Config) check() error {
	var faults []error
	fault := func(field, format string, a ...any) {
		faults = append(faults, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, a...)))
	}
	for _, check := range []func(faultFunc){
		c.checkName, c.checkIdentity, c.checkType, c.checkFormer, c.checkOwner, c.checkAuditKey, c.checkTracers, c.checkStrategy, c.checkVersion,
		c.checkOnParked, c.checkEndings, c.checkDuplicates, c.checkLimits, c.checkRetention, c.checkReplay, c.checkGeneration, c.checkProvider,
	} {
		check(fault)
	}
	return errors.Join(faults...)
}
