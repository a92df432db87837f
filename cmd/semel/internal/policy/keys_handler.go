package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
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
