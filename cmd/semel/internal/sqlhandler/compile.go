package sqlhandler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/internal/sqltext"
)

// Config is a handler as a policy declares it.
type Config struct {
	// Step is the name of the handler's step in errors; empty if the handler is not a step.
	Step string
	// Params are the parameters of the statements.
	Params []Param
	// Generation, if set, is bound to :generation, unless a parameter has that name.
	Generation *int64
	// Statements run in this order.
	Statements []Statement
	// Intents are made by Handler.Intents.
	Intents []Intent
	// Violates, if set, reports whether an error is a violation of the business key. The effect then
	// exists already, and the message is a duplicate.
	Violates func(error) bool
	// NoEffect, if set, is called with the index of a statement without Rows that changed no row. The
	// message is applied anyway. NoEffect is called once for each run of the handler, including runs that
	// are rolled back.
	NoEffect func(m *semel.Message, statement int)
}

// Param binds the value that a selector finds to a name. See identity.By.
type Param struct {
	Name, Selector string
	// Type is the required type of the value. Empty: any value, except text that a numeric column would
	// read as NaN or an infinity.
	Type ParamType
}

// Statement is one SQL statement with named parameters.
type Statement struct {
	SQL string
	// Upsert: the statement names a unique key, which PostgreSQL looks up when it plans.
	Upsert bool
	// Rows, if not nil, is how many rows the statement must change.
	Rows *int64
	// Otherwise is the outcome of a message whose statement changed another number.
	Otherwise Otherwise
}

// Otherwise is the outcome of a message whose statement changed another number of rows than Rows.
type Otherwise uint8

// The outcomes.
const (
	// OtherwiseUnmet applies the consumer's on_precondition. The default.
	OtherwiseUnmet Otherwise = iota
	// OtherwisePark parks the message for a person.
	OtherwisePark
	// OtherwiseDiscard discards the message without an effect.
	OtherwiseDiscard
	// OtherwiseFail is a failed attempt, which is retried like any other.
	OtherwiseFail
)

// Handler runs statements for messages. Handler is safe for concurrent use.
type Handler struct {
	names     []string
	selectors []selectors.Selector
	types     []ParamType
	// plain, by parameter: all its places hold text, so any text is allowed.
	plain      []bool
	statements []statement
	violates   func(error) bool
	noEffect   func(m *semel.Message, statement int)
	// prepares: statements are prepared once per transaction.
	prepares bool
	prepared prepared
	texts    bool
	watched  watched
	intents  []intent
	// generation is bound to the name after the last selector; nil if it is not used.
	generation any
}

// statement is a compiled statement.
type statement struct {
	// label names the statement in errors.
	label string
	text  string
	// args are the indexes of the values to bind, in the order of the placeholders.
	args    []int
	changes bool
	// simple: the statement changes rows, neither begins with WITH nor returns rows, and can be wrapped
	// into a statement that counts what it returns.
	simple bool
	// planned: Try has to have the statement planned.
	planned   bool
	rows      *int64
	otherwise Otherwise
}

// Compile checks a handler and prepares it for use. The error names every fault of the statements and
// parameters.
func Compile(d Dialect, c Config) (*Handler, error) {
	h := &Handler{violates: c.Violates, noEffect: c.NoEffect, prepares: d.prepares, texts: d.texts}
	var faults []error
	for _, p := range c.Params {
		s, err := selectors.Parse(p.Selector)
		if err != nil {
			faults = append(faults, fmt.Errorf("parameter %s: %w", p.Name, err))
		}
		h.names, h.selectors, h.types = append(h.names, p.Name), append(h.selectors, s), append(h.types, p.Type)
	}
	h.bindGeneration(c.Generation)
	for i, s := range c.Statements {
		ready, err := h.compile(d, s)
		if err != nil {
			faults = append(faults, fmt.Errorf("statement %d: %w", i+1, err))
		}
		ready.label = c.label(i)
		h.statements = append(h.statements, ready)
	}
	for i, n := range c.Intents {
		ready, err := compileIntent(n)
		if err != nil {
			faults = append(faults, fmt.Errorf("intent %d: %w", i+1, err))
		}
		h.intents = append(h.intents, ready)
	}
	h.watched = newWatched(len(h.statements))
	if len(c.Statements) == 0 {
		faults = append(faults, errors.New("there is no statement"))
	}
	return h, errors.Join(faults...)
}

// label returns the name of a statement in errors.
func (c *Config) label(statement int) string {
	if c.Step == "" {
		return fmt.Sprintf("statement %d", statement+1)
	}
	return fmt.Sprintf("statement %d of step %s", statement+1, c.Step)
}

func (h *Handler) compile(d Dialect, s Statement) (statement, error) {
	var faults []error
	for _, f := range d.Check(s.SQL) {
		faults = append(faults, f)
	}
	names, _ := d.Params(s.SQL) // Check has reported what cannot be read
	for _, name := range names {
		if !slices.Contains(h.names, name) {
			faults = append(faults, fmt.Errorf("parameter :%s is not bound", name))
		}
	}
	if len(faults) > 0 {
		return statement{}, errors.Join(faults...)
	}
	ready := h.bind(d, s.SQL)
	ready.rows, ready.otherwise = s.Rows, s.Otherwise
	ready.planned = s.Upsert && d.Name == Postgres().Name
	return ready, nil
}

// bind replaces the parameters' names by the dialect's placeholders. The text begins and ends with the
// statement, because surrounding comments and semicolons would break a statement that wraps it.
func (h *Handler) bind(d Dialect, text string) statement {
	tokens, _ := d.text.Scan(text)
	words := sqltext.Split(tokens)[0]
	from, to := words[0].Start, words[len(words)-1].End
	var out statement
	var b strings.Builder
	for _, t := range tokens {
		switch {
		case t.Start < from || t.End > to:
		case t.Kind == sqltext.Param:
			b.WriteString(d.placeholder(out.place(slices.Index(h.names, t.Word), d.reuse)))
		default:
			b.WriteString(text[t.Start:t.End])
		}
	}
	out.text = b.String()
	out.changes = changes(words)
	out.simple = isChange(words[0]) && !words[0].Is("merge") && !slices.ContainsFunc(words, func(t sqltext.Token) bool { return t.Is("returning") })
	return out
}

// place returns the number of the placeholder for value i.
func (s *statement) place(i int, reuse bool) int {
	if at := slices.Index(s.args, i); reuse && at >= 0 {
		return at + 1
	}
	s.args = append(s.args, i)
	return len(s.args)
}
