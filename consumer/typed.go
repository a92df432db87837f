package consumer

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/identity"
)

// checkType reports what is wrong with Config.Type.
func (c *Config) checkType(fault faultFunc) {
	if c.Type == "" {
		return
	}
	kind, err := identity.ParseSelector(c.Type)
	switch {
	case err != nil:
		fault("Type", "%v", err)
	case kind.Unique():
		fault("Type", "%q finds another value in each message, and a type is shared by many; name the place of the type, such as header:event-type or body:/type", c.Type)
	}
	if v, ok := c.versions(); ok && c.Type != "type" && v.UsesType() {
		fault("Type", "is %q, and Version names the selector type, which would change with it; name %q in Version, too", c.Type, c.Type)
	}
}

// versions are those of Version, if selectors find them.
func (c *Config) versions() (*identity.Versions, bool) {
	if c.Version == nil {
		return nil, false
	}
	v, ok := c.Version.By.(*identity.Versions)
	return v, ok && v != nil
}

// deliveryRules returns how messages are recognised, except what depends on the store.
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
		kind, _ := identity.ParseSelector(c.Type)
		r.Type = &kind
	}
	return r
}

func (c *settings) warnTypeless(messages int) {
	c.Logger.Warn("types of messages are asked for, and no message has had one; if producers write the type in another place, name it: type: header:NAME or body:/POINTER in a policy, Config.Type in Go",
		"consumer", c.Name, "messages", messages)
}

// Takes reports whether a message is the consumer's by Config.Filter. refused says that the
// source refused it, so that it may have lost its type and headers with its form: then only
// what is there can show that it is not.
func (c *Config) Takes(m *semel.Message, refused bool) bool {
	rules := c.deliveryRules()
	return rules.Takes(m, refused)
}
