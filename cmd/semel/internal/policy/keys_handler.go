package policy

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// The tables of handlers.

func handlerShape() object[Handler] {
	return object[Handler]{
		oneOf: []string{"sql", "types", "http", "go"},
		fields: []field[Handler]{
			key(meta{name: "sql", doc: "SQL statements, run in the message's transaction."},
				pointer[SQL]{sqlShape()}, func(h *Handler) **SQL { return &h.SQL }),
			key(meta{name: "types", doc: "A handler for each type of message: `\"payment.made\": {sql: …}`. A type may have a schema version behind it: `payment.made@2` is preferred to `payment.made` for a message whose dataschema is 2 or ends in /2, :2 or #2. A message without a handler for its type ends as `unknown_type`, as `retry.then` says and without an attempt."},
				typesShape{typedHandlerShape()}, func(h *Handler) *[]TypedHandler { return &h.Types }),
			later[Handler]("http", "A handler behind HTTP, in any language."),
			later[Handler]("go", "A handler that a Go program registers."),
		}}
}

func sqlShape() object[SQL] {
	return object[SQL]{fields: []field[SQL]{
		key(meta{name: "params", doc: "The values of `:name` in the statements: a selector each. A value that is missing ends the message as `missing parameter`; with `?` behind the selector it is NULL."},
			paramsShape{}, func(s *SQL) *[]Param { return &s.Params }),
		key(meta{name: "statements", required: true, doc: "The statements, in order."},
			list[Statement]{item: statementShape()}, func(s *SQL) *[]Statement { return &s.Statements }),
	}}
}

func statementShape() object[Statement] {
	return object[Statement]{
		short: statementText{word{what: "an SQL statement", lines: true}},
		fields: []field[Statement]{
			key(meta{name: "sql", required: true, doc: "The statement."},
				word{what: "an SQL statement", lines: true}, func(s *Statement) *string { return &s.SQL }),
			key(meta{name: "rows", doc: "How many rows it must change."},
				pointer[int64]{count64{count{least: 0, most: 1_000_000}}}, func(s *Statement) **int64 { return &s.Rows }),
			key(meta{name: "otherwise", doc: "What becomes of a message whose statement changes another number of rows. Without it, `on_unmet` decides."},
				words("park", "discard", "fail"), func(s *Statement) *string { return &s.Otherwise }),
		}}
}

// statementText is a statement without options.
type statementText struct{ word }

func (s statementText) read(d *decoder, p place) (Statement, bool) {
	text, ok := s.word.read(d, p)
	return Statement{SQL: text}, ok
}

// paramsShape is a mapping of parameter names to selectors.
type paramsShape struct{ leaf }

func (s paramsShape) read(d *decoder, p place) ([]Param, bool) {
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, s.words())
		return nil, false
	}
	var all []Param
	ok := true
	for name, at := range d.entries(p) {
		d.note(at.place)
		if !isVariable(name) {
			d.faultKey(at, fmt.Sprintf("%q cannot be a parameter", name), "use letters, digits and '_', not a digit first")
			ok = false
		}
		text, good := selector(nil).read(d, at.place)
		all, ok = append(all, Param{Name: name, Selector: text}), ok && good
	}
	return all, ok
}

func (paramsShape) words() string { return "a mapping of parameter names to selectors" }
