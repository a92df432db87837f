package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/upsert"
	"go.yaml.in/yaml/v4"
)

// This file has the tables of handlers.

func handlerShape() shape.Object[Handler] {
	return shape.Object[Handler]{
		OneOf: []string{"sql", "types", "http", "kafka", "go"},
		Fields: []shape.Field[Handler]{
			shape.Key(shape.Meta{Name: "sql", Doc: "SQL statements, run in the message's transaction."},
				shape.Optional[SQL](sqlShape()), func(h *Handler) **SQL { return &h.SQL }),
			shape.Key(shape.Meta{Name: "types", Doc: "A handler for each type of message: `\"payment.made\": {sql: …}`. A type may include a schema version: `payment.made@2` is preferred to `payment.made` for a message whose dataschema is 2 or ends in /2, :2 or #2. A message without a handler for its type ends by `retry.on_exhausted` with the reason `unknown type`, without an attempt."},
				typesShape{typedHandlerShape()}, func(h *Handler) *[]TypedHandler { return &h.Types }),
			shape.Key(shape.Meta{Name: "http", Doc: "An endpoint, in any language, that Semel calls for each message; with `strategy: lease`. See [HTTP handlers](http-handlers.md)."},
				shape.Optional[HTTP](httpShape()), func(h *Handler) **HTTP { return &h.HTTP }),
			shape.Key(shape.Meta{Name: "kafka", Doc: "A Kafka topic to which Semel publishes each message; with `strategy: lease`. See [publishing](kafka-publishing.md)."},
				shape.Optional[Publish](publishShape()), func(h *Handler) **Publish { return &h.Kafka }),
			shape.Later[Handler]("go", "A handler that a Go program registers."),
		}}
}

func sqlShape() shape.Object[SQL] {
	return shape.Object[SQL]{OneOf: []string{"statements", "steps"}, Unsaid: "there is no statement", Fields: []shape.Field[SQL]{
		shape.Key(shape.Meta{Name: "params", Doc: "The values of `:name` in the statements: selectors, or `{from: SELECTOR, type: TYPE}`. If a value is missing, the message ends as `missing parameter`; with `?` after the selector the value is NULL. See [types of parameters](#types-of-parameters)."},
			typedParamsShape{}, func(s *SQL) *[]Param { return &s.Params }),
		shape.Key(shape.Meta{Name: "statements", Doc: "The statements, in order. Either `statements` or `steps` is required."},
			shape.List[Statement]{Item: statementShape()}, func(s *SQL) *[]Statement { return &s.Statements }),
		shape.Key(shape.Meta{Name: "intents", Doc: "Intents: requests to other systems, written in the same transaction and sent afterwards by the consumer in `to`. See [intents](intents.md)."},
			shape.List[SQLIntent]{Item: intentShape()}, func(s *SQL) *[]SQLIntent { return &s.Intents }),
		shape.Key(shape.Meta{Name: "steps", Doc: "Instead of `statements`: steps that run one after another, each once and in its own transaction; with `strategy: inbox` and `ack: after_receipt`. See [steps](steps.md#in-a-policy)."},
			shape.List[SQLStep]{Item: stepShape()}, func(s *SQL) *[]SQLStep { return &s.Steps }),
	}}
}

func statementShape() statementObject {
	return statementObject{shape.Object[Statement]{
		Short: statementText{shape.Word{What: "an SQL statement", Lines: true}},
		Fields: []shape.Field[Statement]{
			shape.Key(shape.Meta{Name: "sql", Doc: "The statement. Either `sql` or `upsert` is required."},
				shape.Word{What: "an SQL statement", Lines: true}, func(s *Statement) *string { return &s.SQL }),
			shape.Key(shape.Meta{Name: "upsert", Doc: "Instead of `sql`: inserts a row, or updates it if its version is older. See [upserts](#upserts)."},
				shape.Optional[upsert.Newer](upsertShape()), func(s *Statement) **upsert.Newer { return &s.Upsert }),
			shape.Key(shape.Meta{Name: "rows", Doc: "The number of rows that the statement must change."},
				shape.Optional[int64](shape.Count64{Count: shape.Count{Least: 0, Most: 1_000_000}}), func(s *Statement) **int64 { return &s.Rows }),
			shape.Key(shape.Meta{Name: "otherwise", Doc: "How the message ends if the statement changes another number of rows. Default: `on_precondition`."},
				words("park", "discard", "fail"), func(s *Statement) *string { return &s.Otherwise }),
		}}}
}

// upsertShape describes an upsert, which updates a row only if the message has a newer version.
func upsertShape() shape.Object[upsert.Newer] {
	columns := func() shape.List[string] { return shape.List[string]{Item: shape.Word{What: "the name of a column"}} }
	return shape.Object[upsert.Newer]{Fields: []shape.Field[upsert.Newer]{
		shape.Key(shape.Meta{Name: "table", Required: true, Doc: "The table, with its schema if needed (`schema.table`)."},
			shape.Word{What: "the name of a table"}, func(n *upsert.Newer) *string { return &n.Table }),
		shape.Key(shape.Meta{Name: "key", Required: true, Doc: "The columns of its unique key. Each column gets the parameter of the same name."},
			columns(), func(n *upsert.Newer) *[]string { return &n.Key }),
		shape.Key(shape.Meta{Name: "set", Doc: "The other columns to write."},
			columns(), func(n *upsert.Newer) *[]string { return &n.Set }),
		shape.Key(shape.Meta{Name: "version", Required: true, Doc: "The column with the version, a number that the producer counts for each key."},
			shape.Word{What: "the name of a column"}, func(n *upsert.Newer) *string { return &n.Version }),
	}}
}

// statementObject describes a statement with options. The policy gives the SQL text or an upsert, from which
// Semel generates the text.
type statementObject struct{ shape.Object[Statement] }

func (s statementObject) Read(d *shape.Decoder, p shape.Place) (Statement, bool) {
	statement, ok := s.Object.Read(d, p)
	u := statement.Upsert
	switch {
	case !ok:
		return statement, false
	case u == nil && statement.SQL == "":
		d.Fault(p, "sql is missing", "write the statement as sql: …, or upsert: {table: …, key: […], version: …}")
		return statement, false
	case u == nil:
		return statement, true
	case statement.SQL != "":
		d.Fault(p, "sql and upsert exclude each other", "remove one: an upsert is a statement of its own")
		return statement, false
	}
	for _, column := range slices.Concat(u.Key, u.Set, []string{u.Version}) {
		if !shape.IsVariable(column) {
			d.Fault(p, fmt.Sprintf("%q cannot be a parameter, but each column of an upsert needs a parameter with its name", column), "write the statement as sql, with a parameter of another name")
			return statement, false
		}
	}
	text, err := u.Named()
	if err != nil {
		d.Fault(p, strings.ReplaceAll(strings.TrimPrefix(err.Error(), "upsert: "), "\n", ", "), "correct the upsert")
		return statement, false
	}
	statement.SQL = text
	return statement, true
}

// typedParamsShape describes a mapping of parameter names to selectors, with optional types.
type typedParamsShape struct{}

func (s typedParamsShape) Read(d *shape.Decoder, p shape.Place) ([]Param, bool) {
	return readParams(d, p, s.Words(), func(name string, at shape.Place) (Param, bool) {
		bound, good := boundParam().Read(d, at)
		bound.Name = name
		return bound, good
	})
}

// boundParam describes a mapping of a selector and a type.
func boundParam() shape.Object[Param] {
	return shape.Object[Param]{Short: plainParam{selector(nil)}, Fields: []shape.Field[Param]{
		shape.Key(shape.Meta{Name: "from", Required: true, Doc: "The selector."},
			selector(nil), func(p *Param) *string { return &p.Selector }),
		shape.Key(shape.Meta{Name: "type", Doc: "The type of the value. A message with another value ends as `malformed`. Without a type, the same happens to a text that a numeric column would read as NaN or infinity."},
			typeWord(), func(p *Param) *sqlhandler.ParamType { return &p.Type }),
	}}
}

// plainParam describes a selector without a type.
type plainParam struct{ shape.Word }

func (s plainParam) Read(d *shape.Decoder, p shape.Place) (Param, bool) {
	text, ok := s.Word.Read(d, p)
	return Param{Selector: text}, ok
}

func (s typedParamsShape) Keys() []shape.Meta {
	return []shape.Meta{{Name: "NAME", Doc: "The parameter of this name.", Shape: boundParam()}}
}

func (typedParamsShape) Words() string { return "a mapping of parameter names to selectors" }

// paramsShape describes a mapping of parameter names to selectors.
type paramsShape struct{ shape.Leaf }

func (s paramsShape) Read(d *shape.Decoder, p shape.Place) ([]Param, bool) {
	return readParams(d, p, s.Words(), func(name string, at shape.Place) (Param, bool) {
		text, good := selector(nil).Read(d, at)
		return Param{Name: name, Selector: text}, good
	})
}

// readParams reads a mapping of parameter names to values. readParams calls the function one to read each
// value.
func readParams[P any](d *shape.Decoder, p shape.Place, words string, one func(name string, at shape.Place) (P, bool)) (all []P, ok bool) {
	if p.Value().Kind != yaml.MappingNode {
		d.WrongType(p, words)
		return nil, false
	}
	ok = true
	for name, at := range d.Entries(p) {
		d.Note(at.Place)
		if !shape.IsVariable(name) {
			d.FaultKey(at, fmt.Sprintf("%q cannot be a parameter", name), "use letters, digits and '_', not a digit first")
			ok = false
		}
		read, good := one(name, at.Place)
		all, ok = append(all, read), ok && good
	}
	return all, ok
}

func (paramsShape) Words() string { return "a mapping of parameter names to selectors" }

func (typedParamsShape) Schema() shape.Schema {
	return shape.Schema{"type": "object", "additionalProperties": boundParam().Schema(), "propertyNames": paramsShape{}.Schema()["propertyNames"]}
}

func (paramsShape) Schema() shape.Schema {
	return shape.Schema{"type": "object", "additionalProperties": selector(nil).Schema(),
		"propertyNames": shape.Schema{"pattern": `^[A-Za-z_][A-Za-z0-9_]*$`}}
}

// SQLStep is a step of an SQL handler, with its own transaction.
type SQLStep struct {
	// Name identifies the step. The message's row lists the names of completed steps.
	Name string
	// Statements run in this order in the step's transaction.
	Statements []Statement
	// Intents are written after the statements, in the same transaction.
	Intents []SQLIntent
}

func stepShape() shape.Object[SQLStep] {
	return shape.Object[SQLStep]{Fields: []shape.Field[SQLStep]{
		shape.Key(shape.Meta{Name: "name", Required: true, Doc: "The name of the step, recorded in the row when the step is done. Do not rename it: a row with other steps is parked as `steps changed`."},
			shape.Word{What: stepNameWords, Check: badStepName, Pattern: stepName.String()}, func(s *SQLStep) *string { return &s.Name }),
		shape.Key(shape.Meta{Name: "statements", Required: true, Doc: "The statements of the step, in order."},
			shape.List[Statement]{Item: statementShape()}, func(s *SQLStep) *[]Statement { return &s.Statements }),
		shape.Key(shape.Meta{Name: "intents", Doc: "Intents: requests to other systems, written in the transaction of the step. See [intents](intents.md)."},
			shape.List[SQLIntent]{Item: intentShape()}, func(s *SQLStep) *[]SQLIntent { return &s.Intents }),
	}}
}

// stepName matches valid names of steps.
var stepName = regexp.MustCompile(fmt.Sprintf(`^[a-z0-9_-]{1,%d}$`, steplimit.Name))

var stepNameWords = fmt.Sprintf("a name of 1 to %d of a to z, 0 to 9, '_' and '-'", steplimit.Name)

func badStepName(name string) (reason, remedy string) {
	if stepName.MatchString(name) {
		return "", ""
	}
	return fmt.Sprintf("%q is not a valid name of a step", name), "write " + stepNameWords
}

func effectsShape() shape.Object[HTTPEffects] {
	return shape.Object[HTTPEffects]{Fields: []shape.Field[HTTPEffects]{
		shape.Key(shape.Meta{Name: "statements", Doc: "The statements that a response may name, by name. They run in the transaction that completes the message, in the order of the response, once for each mention."},
			shape.Named[AnswerStatement]{What: "statement", Item: answerStatementShape(), Set: func(s *AnswerStatement, name string) { s.Name = name }},
			func(e *HTTPEffects) *[]*AnswerStatement { return &e.Statements }),
		shape.Key(shape.Meta{Name: "intents", Doc: "The consumers that send the [intents](intents.md) of a response; each consumer is without `from` and on the same store. The intents are written in the same transaction."},
			shape.List[string]{Item: shape.Word{What: "the name of a consumer"}, Single: true}, func(e *HTTPEffects) *[]string { return &e.Intents }),
	}}
}

func answerStatementShape() shape.Object[AnswerStatement] {
	return shape.Object[AnswerStatement]{Fields: []shape.Field[AnswerStatement]{
		shape.Key(shape.Meta{Name: "sql", Required: true, Doc: "The statement, with `:name` for each parameter. The limits of [SQL handlers](#sql-handlers) apply."},
			shape.Word{What: "an SQL statement", Lines: true}, func(s *AnswerStatement) *string { return &s.SQL }),
		shape.Key(shape.Meta{Name: "params", Doc: "The parameters that the response must contain, each with its type. With `?` after the type, the value may be missing or null, and is bound as NULL. See [effects in the answer](#effects-in-the-answer)."},
			answerParamsShape{}, func(s *AnswerStatement) *[]AnswerParam { return &s.Params }),
		shape.Key(shape.Meta{Name: "rows", Doc: "The number of rows that the statement must change."},
			shape.Optional[int64](shape.Count64{Count: shape.Count{Least: 0, Most: 1_000_000}}), func(s *AnswerStatement) **int64 { return &s.Rows }),
		shape.Key(shape.Meta{Name: "otherwise", Doc: "How the message ends if the statement changes another number of rows. Default: `on_precondition`."},
			words("park", "discard", "fail"), func(s *AnswerStatement) *string { return &s.Otherwise }),
	}}
}

// answerParamsShape describes a mapping of parameter names to types.
type answerParamsShape struct{ shape.Leaf }

func (s answerParamsShape) Read(d *shape.Decoder, p shape.Place) ([]AnswerParam, bool) {
	return readParams(d, p, s.Words(), func(name string, at shape.Place) (AnswerParam, bool) {
		kind, good := paramType().Read(d, at)
		kind.Name = name
		return kind, good
	})
}

// typeWord describes the name of a type.
func typeWord() shape.Choice[sqlhandler.ParamType] {
	var c shape.Choice[sqlhandler.ParamType]
	for _, t := range sqlhandler.ParamTypes() {
		c.Options = append(c.Options, shape.Option[sqlhandler.ParamType]{Word: string(t), Value: t})
	}
	return c
}

// paramType describes the name of a type with an optional question mark.
func paramType() shape.Choice[AnswerParam] {
	var c shape.Choice[AnswerParam]
	for _, o := range typeWord().Options {
		c.Options = append(c.Options, shape.Option[AnswerParam]{Word: o.Word, Value: AnswerParam{Type: o.Value}})
	}
	for _, o := range slices.Clone(c.Options) {
		o.Word, o.Value.Optional = o.Word+"?", true
		c.Options = append(c.Options, o)
	}
	return c
}

func (answerParamsShape) Words() string {
	var all []string
	for _, t := range sqlhandler.ParamTypes() {
		all = append(all, string(t))
	}
	return "a mapping of parameter names to types (" + strings.Join(all, ", ") + ", or one of them with ?)"
}

func (s answerParamsShape) Schema() shape.Schema {
	return shape.Schema{"type": "object", "additionalProperties": paramType().Schema(), "propertyNames": paramsShape{}.Schema()["propertyNames"]}
}

// SQLIntent is an intent that an SQL handler writes.
type SQLIntent struct {
	// To is the name of the consumer that sends the intent. The sending consumer is in the same policy and has
	// no source.
	To, Purpose, Type string
	// Recipient and Key are selectors; empty if the policy sets none.
	Recipient, Key string
	// Body lists the members of the intent's body, in the file's order. If Body is empty, the intent has the
	// body of the message.
	Body []Param
}

func intentShape() shape.Object[SQLIntent] {
	return shape.Object[SQLIntent]{Fields: []shape.Field[SQLIntent]{
		shape.Key(shape.Meta{Name: "to", Required: true, Doc: "The consumer that sends the intent: a consumer without `from`, on the same store. See [intents](intents.md)."},
			shape.Word{What: "the name of a consumer"}, func(n *SQLIntent) *string { return &n.To }),
		shape.Key(shape.Meta{Name: "purpose", Required: true, Doc: "The purpose, such as `confirmation`. Message, purpose and recipient form the id and the idempotency key."},
			shape.Word{What: "a word"}, func(n *SQLIntent) *string { return &n.Purpose }),
		shape.Key(shape.Meta{Name: "type", Doc: "The `ce-type` of the request."},
			shape.Word{What: "a type"}, func(n *SQLIntent) *string { return &n.Type }),
		shape.Key(shape.Meta{Name: "recipient", Doc: "The selector of the recipient. It is also the routing key."},
			selector(nil), func(n *SQLIntent) *string { return &n.Recipient }),
		shape.Key(shape.Meta{Name: "key", Doc: "The selector of the `Idempotency-Key`, if the endpoint expects a number from your message. Default: Semel's own key."},
			selector(nil), func(n *SQLIntent) *string { return &n.Key }),
		shape.Key(shape.Meta{Name: "body", Doc: "The members of a JSON object, as selectors. If a value is missing, the message ends as `missing parameter`; with `?` after the selector the value is null. Default: the body of the message."},
			paramsShape{}, func(n *SQLIntent) *[]Param { return &n.Body }),
	}}
}

// typesShape describes a mapping of types, with or without a schema version, to their handlers.
type typesShape struct{ item shape.Shape[TypedHandler] }

func typedHandlerShape() shape.Object[TypedHandler] {
	return shape.Object[TypedHandler]{Fields: []shape.Field[TypedHandler]{
		shape.Key(shape.Meta{Name: "sql", Required: true, Doc: "SQL statements, run in the message's transaction."},
			shape.Optional[SQL](sqlShape()), func(h *TypedHandler) **SQL { return &h.SQL }),
	}}
}

func (s typesShape) Read(d *shape.Decoder, p shape.Place) ([]TypedHandler, bool) {
	if p.Value().Kind != yaml.MappingNode {
		d.WrongType(p, s.Words())
		return nil, false
	}
	var all []TypedHandler
	ok := true
	for name, at := range d.Entries(p) {
		at.Path = p.Path + typePath(name)
		if reason := badType(name); reason != "" {
			d.FaultKey(at, reason, `write the type as the producer does, as "payment.made" or "payment.made@2"`)
			ok = false
		}
		d.Note(at.Place)
		v, good := s.item.Read(d, at.Place)
		v.Type = name
		all, ok = append(all, v), ok && good
	}
	if len(p.Value().Content) == 0 {
		d.Fault(p, "there is no type", "name at least one")
		ok = false
	}
	return all, ok
}

// typePath returns the path of a type below the key types. The type is quoted because types can contain
// dots.
func typePath(name string) string { return fmt.Sprintf("[%q]", name) }

func badType(name string) string {
	kind, version, versioned := strings.Cut(name, "@")
	switch {
	case strings.TrimSpace(name) != name || strings.ContainsAny(name, "\n\r"):
		return "a type must not begin or end with a blank, or contain a line break"
	case kind == "":
		return "the type is empty, and messages without a type have no handler"
	case versioned && version == "":
		return "the version after @ is missing"
	}
	return ""
}

func (s typesShape) Keys() []shape.Meta {
	return []shape.Meta{{Name: "TYPE", Doc: "The handler of this type.", Shape: s.item}}
}

func (typesShape) Words() string { return "a mapping of types to handlers" }

func (s typesShape) Schema() shape.Schema {
	return shape.Schema{"type": "object", "minProperties": 1, "additionalProperties": s.item.Schema(),
		"propertyNames": shape.Schema{"pattern": `^[^@\s]`}}
}
