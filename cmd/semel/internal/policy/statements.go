package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

// Statements are the statements of one handler or of one step.
type Statements struct {
	// At is the path of the statements, and ParamsAt the path of the object with their parameters. At and
	// ParamsAt are relative to the consumer's path.
	At, ParamsAt string
	// Type is the message type of the handler; empty if the handler is for all types.
	Type string
	// Step is the name of the step; empty if the handler has no steps.
	Step string
	*SQL
}

// Handlers returns all statements of the consumer, in the file's order.
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

// WritesTo reports whether the consumer may write intents that the named sender sends.
func (c *Consumer) WritesTo(sender string) bool {
	if h := c.Handler.HTTP; h != nil && h.Effects != nil && slices.Contains(h.Effects.Intents, sender) {
		return true
	}
	return slices.ContainsFunc(c.Handlers(), func(s Statements) bool {
		return slices.ContainsFunc(s.Intents, func(n SQLIntent) bool { return n.To == sender })
	})
}

// parts returns the statements of a handler, or of each step if the handler has steps.
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

// statementText describes a statement without options.
type statementText struct{ shape.Word }

func (s statementText) Read(d *shape.Decoder, p shape.Place) (Statement, bool) {
	text, ok := s.Word.Read(d, p)
	if ok && p.Bracketed && p.Value().Style == 0 && !isBalanced(text) {
		d.Fault(p, "the parentheses of this statement do not match",
			"within brackets a comma ends a statement: put SQL with commas in quotes, or write it as a block")
		return Statement{}, false
	}
	return Statement{SQL: text}, ok
}

// isBalanced reports whether a statement has as many closing as opening parentheses, outside of
// literals and quoted names.
func isBalanced(statement string) bool {
	depth, quote := 0, rune(0)
	for _, r := range statement {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '(':
			depth++
		case r == ')':
			depth--
		}
	}
	return depth == 0
}
