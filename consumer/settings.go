package consumer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
)

// settings are a checked Config with its defaults and with what the constructor of the consumer
// derives from it. They do not change while the consumer runs, except kinds and reaped.
type settings struct {
	Config
	// public is Config.Name without the generation.
	public string
	// kind is the selector of Config.Type; kinds notices that no message has a type.
	kind  identity.Selector
	kinds *typeWatch
	// keyed says that the store keeps keys, and no rows.
	keyed bool
	// callsOut says that handlers call out, for one claim at a time.
	callsOut bool
	// pure says that their calls change nothing, and need no claim.
	pure bool
	// plan is of tests.
	plan faults.Plan
	// steps are the names of the steps, nil without; mostOutput is how many bytes of the output
	// of a step the store keeps.
	steps      []string
	mostOutput int
	// reaped: markers were removed under an earlier policy; lookBack finds that out.
	reaped *atomic.Bool
	// fitter is the store if it cannot hold every identity, otherwise nil.
	fitter contract.IdentityFitter
}

// settings fills in the defaults and reports every fault of the policy.
func (c Config) settings(plans []faults.Plan) (*settings, error) {
	c.defaults()
	err := c.check()
	setDefault(&c.Provider.Window, DefaultWindow) // after the check: it may be shorter than Timeout where nobody is called
	s := &settings{Config: c, public: c.Name, plan: faults.Of(plans...), reaped: new(atomic.Bool)}
	setDefault(&s.plan.Seed, rand.Uint64())
	if c.Generation != nil {
		s.Name = contract.GenerationName(c.Name, c.Generation.Number)
	}
	if c.Type != "" {
		s.kind, _ = identity.ParseSelector(c.Type)
	}
	s.kinds = &typeWatch{warn: s.warnTypeless}
	if len(c.Only.Types) > 0 {
		s.kinds.ask()
	}
	return s, err
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
