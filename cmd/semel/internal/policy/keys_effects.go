package policy

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
)

// The table of the effects that an endpoint's answer may name.

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
