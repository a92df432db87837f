package policy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Statements are the statements of one handler, or of one step of it.
type Statements struct {
	// At is their path below the consumer's, ParamsAt that of what binds their parameters.
	At, ParamsAt string
	// Type is the type they are for; empty if they are for every message.
	Type string
	// Step is the name of their step; empty if the handler has none.
	Step string
	*SQL
}

// Handlers are all of a consumer's statements, in the file's order.
func (c *Consumer) Handlers() []Statements {
	if c.Handler.SQL != nil {
		return c.Handler.SQL.parts("handler.sql", "")
	}
	var all []Statements
	for _, h := range c.Handler.Types {
		if h.SQL != nil {
			all = append(all, h.SQL.parts("handler.types"+typePath(h.Type)+".sql", h.Type)...)
		}
	}
	return all
}

// WritesTo reports whether what the consumer does may write intents for another.
func (c *Consumer) WritesTo(sender string) bool {
	if h := c.Handler.HTTP; h != nil && h.Effects != nil && slices.Contains(h.Effects.Intents, sender) {
		return true
	}
	return slices.ContainsFunc(c.Handlers(), func(s Statements) bool {
		return slices.ContainsFunc(s.Intents, func(n SQLIntent) bool { return n.To == sender })
	})
}

// parts are the statements of a handler at a path: its own, or those of its steps.
func (s *SQL) parts(at, kind string) []Statements {
	if s.Steps == nil {
		return []Statements{{At: at, ParamsAt: at, Type: kind, SQL: s}}
	}
	all := make([]Statements, len(s.Steps))
	for i, step := range s.Steps {
		all[i] = Statements{At: fmt.Sprintf("%s.steps[%d]", at, i), ParamsAt: at, Type: kind, Step: step.Name,
			SQL: &SQL{Params: s.Params, Statements: step.Statements, Intents: step.Intents}}
	}
	return all
}

// typesShape is a mapping of types, or types with a schema version, to their
// handlers.
type typesShape struct{ item shape[TypedHandler] }

func typedHandlerShape() object[TypedHandler] {
	return object[TypedHandler]{fields: []field[TypedHandler]{
		key(meta{name: "sql", required: true, doc: "SQL statements, run in the message's transaction."},
			pointer[SQL]{sqlShape()}, func(h *TypedHandler) **SQL { return &h.SQL }),
	}}
}

func (s typesShape) read(d *decoder, p place) ([]TypedHandler, bool) {
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, s.words())
		return nil, false
	}
	var all []TypedHandler
	ok := true
	for name, at := range d.entries(p) {
		at.path = p.path + typePath(name)
		if reason := badType(name); reason != "" {
			d.faultKey(at, reason, `write the type as the producer does, as "payment.made" or "payment.made@2"`)
			ok = false
		}
		d.note(at.place)
		v, good := s.item.read(d, at.place)
		v.Type = name
		all, ok = append(all, v), ok && good
	}
	if len(p.value().Content) == 0 {
		d.fault(p, "there is no type", "name at least one")
		ok = false
	}
	return all, ok
}

// typePath is the path of a type below types. It is quoted, as types have points
// in them.
func typePath(name string) string { return fmt.Sprintf("[%q]", name) }

func badType(name string) string {
	kind, version, versioned := strings.Cut(name, "@")
	switch {
	case strings.TrimSpace(name) != name || strings.ContainsAny(name, "\n\r"):
		return "a type begins and ends with no blank and has no line break"
	case kind == "":
		return "no message without a type gets a handler"
	case versioned && version == "":
		return "the version behind @ is missing"
	}
	return ""
}

func (s typesShape) keys() []meta {
	return []meta{{name: "TYPE", doc: "The handler of this type.", shape: s.item}}
}

func (typesShape) words() string { return "a mapping of types to handlers" }

func (s typesShape) schema() schema {
	return schema{"type": "object", "minProperties": 1, "additionalProperties": s.item.schema(),
		"propertyNames": schema{"pattern": `^[^@\s]`}}
}
