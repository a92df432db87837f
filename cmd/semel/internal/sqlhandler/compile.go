package sqlhandler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/sqltext"
)

// Config is a handler as a policy declares it.
type Config struct {
	// Step names the handler's step in errors; empty if it is none.
	Step string
	// Params are the parameters of the statements.
	Params []Param
	// Generation, if set, is bound to :generation, unless a parameter has that name.
	Generation *int64
	// Statements run in this order.
	Statements []Statement
	// Intents are made by Handler.Intents.
	Intents []Intent
	// Violates, when set, reports whether an error is the violation of the
	// business key: the effect is there already, and the message a duplicate.
	Violates func(error) bool
	// NoEffect, when set, is called when a statement without Rows changed no
	// row, with its index. The message is applied all the same. It is called
	// once for each run of the handler, also for one that is rolled back.
	NoEffect func(m *semel.Message, statement int)
}

// Param binds the value that a selector finds to a name. See identity.ParseSelector.
type Param struct {
	Name, Selector string
	// Type is what the value must be. Empty for any value except text that a number's
	// column would read as NaN or an infinity.
	Type ParamType
}

// Statement is one SQL statement with named parameters.
type Statement struct {
	SQL string
	// Upsert: it names a unique key, which PostgreSQL looks for when it plans.
	Upsert bool
	// Rows, when not nil, is how many rows it must change.
	Rows *int64
	// Otherwise ends a message whose statement changed another number.
	Otherwise Otherwise
}

// Otherwise is what becomes of a message whose statement changed another
// number of rows than it must.
type Otherwise uint8

// The ways to end.
const (
	// OtherwiseUnmet leaves it to the consumer's on_precondition. The default.
	OtherwiseUnmet Otherwise = iota
	// OtherwisePark sets the message aside for a person.
	OtherwisePark
	// OtherwiseDiscard closes the message without an effect.
	OtherwiseDiscard
	// OtherwiseFail is a failed attempt, to be tried again as any other.
	OtherwiseFail
)

// Handler runs statements for messages. It is safe for use by several
// goroutines.
type Handler struct {
	names     []string
	selectors []identity.Selector
	types     []ParamType
	// plain, by parameter: each place of it holds text, so that any text may go there.
	plain      []bool
	statements []statement
	violates   func(error) bool
	noEffect   func(m *semel.Message, statement int)
	// prepares: statements are prepared once a transaction.
	prepares bool
	prepared prepared
	texts    bool
	watched  watched
	intents  []intent
	// generation is bound to the name behind the last of the selectors; nil without one.
	generation any
}

// statement is ready to be sent.
type statement struct {
	// label names it in errors.
	label string
	text  string
	// args are the indexes of the values to bind, in the order of the
	// placeholders.
	args    []int
	changes bool
	// simple: it changes rows, neither begins with WITH nor returns any, and
	// fits into a statement that counts what it returns.
	simple bool
	// planned: Try has to have it planned.
	planned   bool
	rows      *int64
	otherwise Otherwise
}

// Compile checks a handler and makes it ready. The error names every fault of
// the statements and parameters.
func Compile(d Dialect, c Config) (*Handler, error) {
	h := &Handler{violates: c.Violates, noEffect: c.NoEffect, prepares: d.prepares, texts: d.texts}
	var faults []error
	for _, p := range c.Params {
		s, err := identity.ParseSelector(p.Selector)
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

// label names a statement in errors.
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

// bind puts the dialect's placeholders in place of the parameters' names. What
// is sent begins and ends with the statement: comments and semicolons around it
// would be in the way of one that it is put into.
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

// place is the number of the placeholder for value i.
func (s *statement) place(i int, reuse bool) int {
	if at := slices.Index(s.args, i); reuse && at >= 0 {
		return at + 1
	}
	s.args = append(s.args, i)
	return len(s.args)
}
