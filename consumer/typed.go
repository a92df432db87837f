package consumer

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reading"
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

func (c *settings) warnTypeless(messages int) {
	c.Logger.Warn("types of messages are asked for, and no message has had one; if producers write the type in another place, name it: type: header:NAME or body:/POINTER in a policy, Config.Type in Go",
		"consumer", c.Name, "messages", messages)
}

// typeOf finds the type that Config.Type selects; "" for one that is not there. partly
// says that what is found may not be all: then a type that is missing shows nothing.
func (c *settings) typeOf(r reader, m *semel.Message) (kind string, partly bool, err error) {
	switch {
	case c.Type == "" && len(c.Filter.Types) == 0 && !c.kinds.deciding():
		return "", false, nil // nobody needs it
	case c.Type == "":
		return m.Type(), false, nil
	case c.kind.InBody() && c.isTooLarge(m):
		return "", true, nil
	}
	if kind, err = c.kind.TextIn(r.room, m); err != nil {
		return "", true, fmt.Errorf("its type: %w", err)
	}
	if kind == "" {
		kind = m.Type()
	}
	return kind, false, nil
}

// Takes reports whether a message is the consumer's by Config.Filter. refused says that the
// source refused it, so that it may have lost its type and headers with its form: then only
// what is there can show that it is not.
func (c *Config) Takes(m *semel.Message, refused bool) bool {
	s := settings{Config: *c}
	if c.Type != "" {
		s.kind, _ = identity.ParseSelector(c.Type)
	}
	kind, partly, _ := s.typeOf(reader{}, m)
	return c.Filter.misses(m, kind, refused || partly) == ""
}

// typed gives the message the type that Config.Type found. Identity and fingerprint have
// been found before, so that a change of Config.Type changes neither.
func (p *parcel) typed(c *settings, kind string) {
	if c.Type != "" && kind != "" {
		p.message.Attributes.Type = kind
	}
}

// typedAlone is typed for a row, which may have been received before Config.Type was set. A
// type that cannot be read stays what the row says.
func (p *parcel) typedAlone(c *settings) {
	if c.Type == "" {
		return
	}
	room := reading.Borrow()
	defer room.Return()
	if kind, _, err := c.typeOf(reader{room: room}, &p.message); err == nil {
		p.typed(c, kind)
	}
}

// noteTypeAsked tells the type watch if the handler has asked m for its type, which is missing.
func (c *settings) noteTypeAsked(m *semel.Message) {
	if w := c.kinds; w != nil && !w.over.Load() && m.Strict.TypeAsked() {
		w.ask()
	}
}
