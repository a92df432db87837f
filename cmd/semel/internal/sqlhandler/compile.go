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

// Config describes a handler of the policy.
type Config struct {
	// Step is the name of the step, for use in errors; empty if the handler has no steps.
	Step string
	// Type is the type of the handler's messages, for use in errors; empty if the handler is for all types.
	Type string
	// Params are the parameters of the statements.
	Params []Param
	// Generation is the value of the built-in parameter :generation; nil if the handler has no generation. If
	// Params has a parameter with the name generation, that parameter is used instead of the built-in parameter.
	Generation *int64
	// Statements run in this order.
	Statements []Statement
	// Intents describe the intents that Handler.Intents returns.
	Intents []Intent
	// The function Violates reports whether an error is a violation of the business key. If the business key is
	// violated, the effect already exists, so the message is a duplicate. Violates is nil for handlers without a
	// business key.
	Violates func(error) bool
	// NoEffect is called with the index of a statement without Rows that changed no row; may be nil. A message
	// whose statement changed no row is applied anyway. NoEffect is called once per run of the handler,
	// including runs that are rolled back.
	NoEffect func(m *semel.Message, statement int)
}

// Param is a named parameter whose value a selector finds in the message; see identity.By.
type Param struct {
	Name, Selector string
	// Type is the required type of the value. An empty Type allows all values, except texts that a numeric
	// column would read as NaN or infinity.
	Type ParamType
}

// Statement is one SQL statement with named parameters.
type Statement struct {
	SQL string
	// If Upsert is true, the statement names the columns of a unique key. PostgreSQL looks for the unique key
	// only when it plans the statement.
	Upsert bool
	// Rows is the number of rows that the statement must change; nil for any number.
	Rows *int64
	// Otherwise is the outcome if the statement changes a number of rows other than Rows.
	Otherwise Otherwise
}

// Otherwise is the outcome of a message whose statement changed a wrong number of rows.
type Otherwise uint8

// The outcomes of a wrong number of rows.
const (
	// OtherwiseUnmet ends the message as the consumer's on_precondition says. OtherwiseUnmet is the default.
	OtherwiseUnmet Otherwise = iota
	// OtherwisePark parks the message for a person.
	OtherwisePark
	// OtherwiseDiscard discards the message without an effect.
	OtherwiseDiscard
	// OtherwiseFail counts as a failed attempt and is retried.
	OtherwiseFail
)

// Handler runs statements for messages. Handler is safe for concurrent use.
type Handler struct {
	names     []string
	selectors []selectors.Selector
	types     []ParamType
	// textOnly has an entry per parameter. The entry of a parameter is true if the parameter is used only
	// for text columns, so that any text is allowed.
	textOnly   []bool
	statements []statement
	violates   func(error) bool
	noEffect   func(m *semel.Message, statement int)
	// cachesPrepared means that statements are prepared once per transaction.
	cachesPrepared     bool
	preparedStatements statementCache
	sendsText          bool
	checkCounts        checkCounts
	intents            []intent
	// generation is the value of the parameter :generation, which follows the values of the selectors; nil if no
	// statement uses :generation.
	generation any
}

// statement is a compiled SQL statement.
type statement struct {
	// label identifies the statement in errors.
	label string
	text  string
	// args has the index of the value for each placeholder.
	args       []int
	countsRows bool
	// isWrappable means that a second statement can wrap this statement to count the changed rows. A simple
	// statement changes rows, does not start with WITH, and returns no rows.
	isWrappable bool
	// needsPlan means that Try must let the database plan the statement, because preparing does not find
	// all faults.
	needsPlan bool
	rows      *int64
	otherwise Otherwise
}

// Compile checks a handler and prepares it for use. The error lists all faults of statements and parameters.
func Compile(d Dialect, c Config) (*Handler, error) {
	h := &Handler{violates: c.Violates, noEffect: c.NoEffect, cachesPrepared: d.cachesPrepared, sendsText: d.sendsText}
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
	h.checkCounts = newWatched(len(h.statements))
	if len(c.Statements) == 0 {
		faults = append(faults, errors.New("there is no statement"))
	}
	return h, errors.Join(faults...)
}

// label returns the text that identifies a statement in errors.
func (c *Config) label(statement int) string {
	switch {
	case c.Step != "":
		return fmt.Sprintf("statement %d of step %s", statement+1, c.Step)
	case c.Type != "":
		return fmt.Sprintf("statement %d of type %q", statement+1, c.Type)
	}
	return fmt.Sprintf("statement %d", statement+1)
}

func (h *Handler) compile(d Dialect, s Statement) (statement, error) {
	var faults []error
	for _, f := range d.Check(s.SQL) {
		faults = append(faults, f)
	}
	names, _ := d.Params(s.SQL) // Check has reported texts that cannot be parsed
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
	ready.needsPlan = s.Upsert && d.Name == Postgres().Name
	return ready, nil
}

// bind replaces parameter names with the placeholders of the dialect. Text before and after the statement is
// removed, because comments and semicolons in this text would break a statement that wraps the statement.
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
			b.WriteString(d.placeholder(out.placeholderFor(slices.Index(h.names, t.Word), d.reusesParams)))
		default:
			b.WriteString(text[t.Start:t.End])
		}
	}
	out.text = b.String()
	out.countsRows = countsRows(words)
	out.isWrappable = isChange(words[0]) && !words[0].Is("merge") && !slices.ContainsFunc(words, func(t sqltext.Token) bool { return t.Is("returning") })
	return out
}

// placeholderFor returns the number of the placeholder for value i. With reuse, a value that occurs twice
// has one placeholder.
func (s *statement) placeholderFor(i int, reuse bool) int {
	if at := slices.Index(s.args, i); reuse && at >= 0 {
		return at + 1
	}
	s.args = append(s.args, i)
	return len(s.args)
}
