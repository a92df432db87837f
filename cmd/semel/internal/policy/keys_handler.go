package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/upsert"
	"go.yaml.in/yaml/v4"
)

// The tables of handlers.

func handlerShape() object[Handler] {
	return object[Handler]{
		oneOf: []string{"sql", "types", "http", "kafka", "go"},
		fields: []field[Handler]{
			key(meta{name: "sql", doc: "SQL statements, run in the message's transaction."},
				pointer[SQL]{sqlShape()}, func(h *Handler) **SQL { return &h.SQL }),
			key(meta{name: "types", doc: "A handler for each type of message: `\"payment.made\": {sql: …}`. A type may have a schema version behind it: `payment.made@2` is preferred to `payment.made` for a message whose dataschema is 2 or ends in /2, :2 or #2. A message without a handler for its type ends as `unknown_type`, as `retry.on_exhausted` says and without an attempt."},
				typesShape{typedHandlerShape()}, func(h *Handler) *[]TypedHandler { return &h.Types }),
			key(meta{name: "http", doc: "An endpoint that is called for each message, in any language; with `strategy: lease`. See [HTTP handlers](#http-handlers)."},
				pointer[HTTP]{httpShape()}, func(h *Handler) **HTTP { return &h.HTTP }),
			key(meta{name: "kafka", doc: "A topic of Kafka that each message is published to; with `strategy: lease`. See [publishing](#publishing)."},
				pointer[Publish]{publishShape()}, func(h *Handler) **Publish { return &h.Kafka }),
			later[Handler]("go", "A handler that a Go program registers."),
		}}
}

func sqlShape() object[SQL] {
	return object[SQL]{oneOf: []string{"statements", "steps"}, unsaid: "there is no statement", fields: []field[SQL]{
		key(meta{name: "params", doc: "The values of `:name` in the statements: a selector each, or `{from: SELECTOR, type: TYPE}`. A value that is missing ends the message as `missing parameter`; with `?` behind the selector it is NULL. See [types of parameters](#types-of-parameters)."},
			typedParamsShape{}, func(s *SQL) *[]Param { return &s.Params }),
		key(meta{name: "statements", doc: "The statements, in order. They, or `steps`, are required."},
			list[Statement]{item: statementShape()}, func(s *SQL) *[]Statement { return &s.Statements }),
		key(meta{name: "intents", doc: "Effects elsewhere, written down in the same transaction and carried out after it by the consumer that each names. See [intents](intents.md)."},
			list[SQLIntent]{item: intentShape()}, func(s *SQL) *[]SQLIntent { return &s.Intents }),
		key(meta{name: "steps", doc: "In place of `statements`: parts that take effect one after another, each in a transaction of its own, and each once; with `strategy: inbox` and `ack: after_receipt`. See [steps](steps.md#in-a-policy)."},
			list[SQLStep]{item: stepShape()}, func(s *SQL) *[]SQLStep { return &s.Steps }),
	}}
}

func statementShape() statementObject {
	return statementObject{object[Statement]{
		short: statementText{word{what: "an SQL statement", lines: true}},
		fields: []field[Statement]{
			key(meta{name: "sql", doc: "The statement. It, or `upsert`, is required."},
				word{what: "an SQL statement", lines: true}, func(s *Statement) *string { return &s.SQL }),
			key(meta{name: "upsert", doc: "In place of `sql`: a row is inserted, or changed if the version that it has is older. See [upserts](#upserts)."},
				pointer[upsert.Newer]{upsertShape()}, func(s *Statement) **upsert.Newer { return &s.Upsert }),
			key(meta{name: "rows", doc: "How many rows it must change."},
				pointer[int64]{count64{count{least: 0, most: 1_000_000}}}, func(s *Statement) **int64 { return &s.Rows }),
			key(meta{name: "otherwise", doc: "What becomes of a message whose statement changes another number of rows. Without it, `on_precondition` decides."},
				words("park", "discard", "fail"), func(s *Statement) *string { return &s.Otherwise }),
		}}}
}

// upsertShape is the statement that keeps a row at its newest version.
func upsertShape() object[upsert.Newer] {
	columns := func() list[string] { return list[string]{item: word{what: "the name of a column"}} }
	return object[upsert.Newer]{fields: []field[upsert.Newer]{
		key(meta{name: "table", required: true, doc: "The table, with its schema before a dot if it needs one."},
			word{what: "the name of a table"}, func(n *upsert.Newer) *string { return &n.Table }),
		key(meta{name: "key", required: true, doc: "The columns of its unique key. Each column gets the parameter of its name."},
			columns(), func(n *upsert.Newer) *[]string { return &n.Key }),
		key(meta{name: "set", doc: "The other columns that are written."},
			columns(), func(n *upsert.Newer) *[]string { return &n.Set }),
		key(meta{name: "version", required: true, doc: "The column that says which of two states is newer: a number that the producer counts for each key."},
			word{what: "the name of a column"}, func(n *upsert.Newer) *string { return &n.Version }),
	}}
}

// statementObject is a statement with options, whose text is written or made of an upsert.
type statementObject struct{ object[Statement] }

func (s statementObject) read(d *decoder, p place) (Statement, bool) {
	statement, ok := s.object.read(d, p)
	u := statement.Upsert
	switch {
	case !ok:
		return statement, false
	case u == nil && statement.SQL == "":
		d.fault(p, "sql is missing", "write the statement as sql: …, or upsert: {table: …, key: […], version: …}")
		return statement, false
	case u == nil:
		return statement, true
	case statement.SQL != "":
		d.fault(p, "sql and upsert stand beside one another", "remove one: an upsert is a statement of its own")
		return statement, false
	}
	for _, column := range slices.Concat(u.Key, u.Set, []string{u.Version}) {
		if !isVariable(column) {
			d.fault(p, fmt.Sprintf("%q cannot be a parameter, and each column of an upsert gets the one of its name", column), "write the statement as sql, with a parameter of another name")
			return statement, false
		}
	}
	text, err := u.Named()
	if err != nil {
		d.fault(p, strings.ReplaceAll(strings.TrimPrefix(err.Error(), "upsert: "), "\n", ", "), "mend the upsert")
		return statement, false
	}
	statement.SQL = text
	return statement, true
}

// statementText is a statement without options.
type statementText struct{ word }

func (s statementText) read(d *decoder, p place) (Statement, bool) {
	text, ok := s.word.read(d, p)
	return Statement{SQL: text}, ok
}

// typedParamsShape is a mapping of parameter names to selectors, with a type or without.
type typedParamsShape struct{}

func (s typedParamsShape) read(d *decoder, p place) ([]Param, bool) {
	return readParams(d, p, s.words(), func(name string, at place) (Param, bool) {
		bound, good := boundParam().read(d, at)
		bound.Name = name
		return bound, good
	})
}

// boundParam is a selector, or a mapping of a selector and a type.
func boundParam() object[Param] {
	return object[Param]{short: plainParam{selector(nil)}, fields: []field[Param]{
		key(meta{name: "from", required: true, doc: "The selector."},
			selector(nil), func(p *Param) *string { return &p.Selector }),
		key(meta{name: "type", doc: "What the value must be. A message whose value is something else fails for good as `malformed`. Without a type, so does a text that a number's column would read as NaN or an infinity."},
			typeWord(), func(p *Param) *sqlhandler.ParamType { return &p.Type }),
	}}
}

// plainParam is a selector alone.
type plainParam struct{ word }

func (s plainParam) read(d *decoder, p place) (Param, bool) {
	text, ok := s.word.read(d, p)
	return Param{Selector: text}, ok
}

func (s typedParamsShape) keys() []meta {
	return []meta{{name: "NAME", doc: "The parameter of this name.", shape: boundParam()}}
}

func (typedParamsShape) words() string { return "a mapping of parameter names to selectors" }

// paramsShape is a mapping of parameter names to selectors.
type paramsShape struct{ leaf }

func (s paramsShape) read(d *decoder, p place) ([]Param, bool) {
	return readParams(d, p, s.words(), func(name string, at place) (Param, bool) {
		text, good := selector(nil).read(d, at)
		return Param{Name: name, Selector: text}, good
	})
}

// readParams reads a mapping of parameter names to what one reads.
func readParams[P any](d *decoder, p place, words string, one func(name string, at place) (P, bool)) (all []P, ok bool) {
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, words)
		return nil, false
	}
	ok = true
	for name, at := range d.entries(p) {
		d.note(at.place)
		if !isVariable(name) {
			d.faultKey(at, fmt.Sprintf("%q cannot be a parameter", name), "use letters, digits and '_', not a digit first")
			ok = false
		}
		read, good := one(name, at.place)
		all, ok = append(all, read), ok && good
	}
	return all, ok
}

func (paramsShape) words() string { return "a mapping of parameter names to selectors" }

func (typedParamsShape) schema() schema {
	return schema{"type": "object", "additionalProperties": boundParam().schema(), "propertyNames": paramsShape{}.schema()["propertyNames"]}
}

func (paramsShape) schema() schema {
	return schema{"type": "object", "additionalProperties": selector(nil).schema(),
		"propertyNames": schema{"pattern": `^[A-Za-z_][A-Za-z0-9_]*$`}}
}

// SQLStep is a part of a handler of statements that takes effect by itself.
type SQLStep struct {
	// Name is what a message's row knows it by once it is done.
	Name string
	// Statements run in this order in the step's transaction.
	Statements []Statement
	// Intents are written down after them, in it.
	Intents []SQLIntent
}

func stepShape() object[SQLStep] {
	return object[SQLStep]{fields: []field[SQLStep]{
		key(meta{name: "name", required: true, doc: "Its name, which a message's row keeps once the step is done. It stays: a row whose steps are others is parked as `steps changed`."},
			word{what: stepNameWords, check: badStepName, pattern: stepName.String()}, func(s *SQLStep) *string { return &s.Name }),
		key(meta{name: "statements", required: true, doc: "Its statements, in order."},
			list[Statement]{item: statementShape()}, func(s *SQLStep) *[]Statement { return &s.Statements }),
		key(meta{name: "intents", doc: "Effects elsewhere, written down in the step's transaction. See [intents](intents.md)."},
			list[SQLIntent]{item: intentShape()}, func(s *SQLStep) *[]SQLIntent { return &s.Intents }),
	}}
}

// stepName is what a step of a policy may be named.
var stepName = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9_-]{1,%d}$`, store.MaxStepName))

var stepNameWords = fmt.Sprintf("a name of 1 to %d of a to z, 0 to 9, '_' and '-'", store.MaxStepName)

func badStepName(name string) (reason, remedy string) {
	if stepName.MatchString(name) {
		return "", ""
	}
	return fmt.Sprintf("%q is no name of a step", name), "write " + stepNameWords
}

func effectsShape() object[HTTPEffects] {
	return object[HTTPEffects]{fields: []field[HTTPEffects]{
		key(meta{name: "statements", doc: "The statements that an answer may name, each with a name of its own. They run in the transaction that completes the message, in the order of the answer, as often as it names them."},
			named[AnswerStatement]{what: "statement", item: answerStatementShape(), set: func(s *AnswerStatement, name string) { s.Name = name }},
			func(e *HTTPEffects) *[]*AnswerStatement { return &e.Statements }),
		key(meta{name: "intents", doc: "The consumers that an answer may write [intents](intents.md) for: each without `from`, on the same store. They are written in the same transaction."},
			list[string]{item: word{what: "the name of a consumer"}, single: true}, func(e *HTTPEffects) *[]string { return &e.Intents }),
	}}
}

func answerStatementShape() object[AnswerStatement] {
	return object[AnswerStatement]{fields: []field[AnswerStatement]{
		key(meta{name: "sql", required: true, doc: "The statement, with `:name` for each parameter. What [SQL handlers](#sql-handlers) may not have, it may not have either."},
			word{what: "an SQL statement", lines: true}, func(s *AnswerStatement) *string { return &s.SQL }),
		key(meta{name: "params", doc: "The parameters that the answer must give, and the type of each; with `?` behind it a value may be missing or null, and is NULL then. See [effects in the answer](#effects-in-the-answer)."},
			answerParamsShape{}, func(s *AnswerStatement) *[]AnswerParam { return &s.Params }),
		key(meta{name: "rows", doc: "How many rows it must change."},
			pointer[int64]{count64{count{least: 0, most: 1_000_000}}}, func(s *AnswerStatement) **int64 { return &s.Rows }),
		key(meta{name: "otherwise", doc: "What becomes of a message whose statement changes another number of rows. Without it, `on_precondition` decides."},
			words("park", "discard", "fail"), func(s *AnswerStatement) *string { return &s.Otherwise }),
	}}
}

// answerParamsShape is a mapping of parameter names to types.
type answerParamsShape struct{ leaf }

func (s answerParamsShape) read(d *decoder, p place) ([]AnswerParam, bool) {
	return readParams(d, p, s.words(), func(name string, at place) (AnswerParam, bool) {
		kind, good := paramType().read(d, at)
		kind.Name = name
		return kind, good
	})
}

// typeWord is the word for a type.
func typeWord() choice[sqlhandler.ParamType] {
	var c choice[sqlhandler.ParamType]
	for _, t := range sqlhandler.ParamTypes() {
		c.options = append(c.options, option[sqlhandler.ParamType]{word: string(t), value: t})
	}
	return c
}

// paramType is the word for a type, also with a question mark behind it.
func paramType() choice[AnswerParam] {
	var c choice[AnswerParam]
	for _, o := range typeWord().options {
		c.options = append(c.options, option[AnswerParam]{word: o.word, value: AnswerParam{Type: o.value}})
	}
	for _, o := range slices.Clone(c.options) {
		o.word, o.value.Optional = o.word+"?", true
		c.options = append(c.options, o)
	}
	return c
}

func (answerParamsShape) words() string {
	var all []string
	for _, t := range sqlhandler.ParamTypes() {
		all = append(all, string(t))
	}
	return "a mapping of parameter names to types (" + strings.Join(all, ", ") + ", or one of them with ?)"
}

func (s answerParamsShape) schema() schema {
	return schema{"type": "object", "additionalProperties": paramType().schema(), "propertyNames": paramsShape{}.schema()["propertyNames"]}
}

// SQLIntent is an effect elsewhere that a handler of statements writes down.
type SQLIntent struct {
	// To names a consumer of the policy that sends.
	To, Purpose, Type string
	// Recipient and Key are selectors; empty for none.
	Recipient, Key string
	// Body are the members of its body, in the file's order; none: the message's body.
	Body []Param
}

func intentShape() object[SQLIntent] {
	return object[SQLIntent]{fields: []field[SQLIntent]{
		key(meta{name: "to", required: true, doc: "The consumer that sends it: one without `from`, on the same store. See [intents](intents.md)."},
			word{what: "the name of a consumer"}, func(n *SQLIntent) *string { return &n.To }),
		key(meta{name: "purpose", required: true, doc: "What it is for, such as `confirmation`. Message, purpose and recipient make its id, and the key that the endpoint gets."},
			word{what: "a word"}, func(n *SQLIntent) *string { return &n.Purpose }),
		key(meta{name: "type", doc: "The `ce-type` of what the endpoint gets."},
			word{what: "a type"}, func(n *SQLIntent) *string { return &n.Type }),
		key(meta{name: "recipient", doc: "Whom it is for: a selector. It is the key of what is sent, too."},
			selector(nil), func(n *SQLIntent) *string { return &n.Recipient }),
		key(meta{name: "key", doc: "The `Idempotency-Key` that the endpoint gets, where it keeps a number of yours unique: a selector. Without it Semel makes one."},
			selector(nil), func(n *SQLIntent) *string { return &n.Key }),
		key(meta{name: "body", doc: "The members of a JSON object: a selector each. A value that is missing ends the message as `missing parameter`; with `?` behind the selector it is null. Without `body` it is the message's own."},
			paramsShape{}, func(n *SQLIntent) *[]Param { return &n.Body }),
	}}
}
