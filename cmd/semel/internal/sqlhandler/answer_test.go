package sqlhandler

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

// secret is part of the test responses. Errors must not contain the secret.
const secret = "hunter2"

func effectsOf(t *testing.T, d Dialect) *Effects {
	t.Helper()
	rows := int64(1)
	e, err := CompileEffects(d, []Named{
		{Name: "book", Statement: Statement{SQL: "update accounts set balance = balance + :amount where id = :account", Rows: &rows},
			Params: []TypedParam{{Name: "account", Type: Text}, {Name: "amount", Type: Decimal}}},
		{Name: "put", Statement: Statement{SQL: "insert into t values (:n, :yes, :any, :note)"},
			Params: []TypedParam{{Name: "n", Type: Integer}, {Name: "yes", Type: Boolean}, {Name: "any", Type: JSON}, {Name: "note", Type: Text, Optional: true}}},
		{Name: "tick", Statement: Statement{SQL: "update ticks set n = n + 1"}},
	}, []string{"mailer", "receipts"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestValidEffects(t *testing.T) {
	put := func(n, yes, whatever, more string) string {
		return fmt.Sprintf(`{"effects":[{"statement":"put","params":{"n":%s,"yes":%s,"any":%s%s}}]}`, n, yes, whatever, more)
	}
	book := func(amount string) string {
		return `{"effects":[{"params":{"amount":` + amount + `,"account":"a"},"statement":"book"}]}`
	}
	t.Run("K10_its_values_keep_what_was_written", func(t *testing.T) {
		for answer, want := range map[string][2][]any{ // expected arguments in SQLite and in PostgreSQL
			book("0.1"):                      {{"a", 0.1}, {"a", "0.1"}},
			book(`"0.1"`):                    {{"a", 0.1}, {"a", "0.1"}},
			book("-250"):                     {{"a", int64(-250)}, {"a", "-250"}},
			book("12345678901234567890.123"): {{"a", "12345678901234567890.123"}, {"a", "12345678901234567890.123"}},
			book(`"9007199254740993"`):       {{"a", int64(9007199254740993)}, {"a", "9007199254740993"}},
			put("9007199254740993", "true", `{"b": [1.50]}`, ""):           {{int64(9007199254740993), true, `{"b": [1.50]}`, nil}, {"9007199254740993", "true", `{"b": [1.50]}`, nil}},
			put(`"-9223372036854775808"`, "false", "null", `,"note":null`): {{int64(-9223372036854775808), false, "null", nil}, {"-9223372036854775808", "false", "null", nil}},
			put("1e2", "true", `""`, `,"note":"\u00e9"`):                   {{int64(100), true, `""`, "é"}, {"100", "true", `""`, "é"}},
		} {
			for i, d := range []Dialect{SQLite(), Postgres()} {
				all, err := effectsOf(t, d).Read([]byte(answer), &semel.Message{Body: []byte(`own`)})
				if err != nil || len(all.effects) != 1 || !reflect.DeepEqual(all.effects[0].values, want[i]) {
					t.Errorf("%s on %s: %v, %v", answer, d.Name, all, err)
				}
			}
		}
	})
	t.Run("K10_statements_come_in_its_order_as_often_as_it_names_them", func(t *testing.T) {
		all, err := effectsOf(t, SQLite()).Read([]byte(` {"effects": [{"statement":"tick"},{"statement":"tick","params":{}},{"statement":"book","params":{"account":"","amount":0}}]} `), nil)
		if err != nil || len(all.effects) != 3 || all.effects[0].statement.name != "tick" || all.effects[1].statement.name != "tick" || all.effects[2].statement.name != "book" {
			t.Errorf("%v, %v", all, err)
		}
		if all, err := effectsOf(t, SQLite()).Read([]byte(`{"effects":[]}`), nil); err != nil || len(all.effects) != 0 {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestInvalidEffects(t *testing.T) {
	book := `{"statement":"book","params":{"account":"` + secret + `","amount":1}}`
	in := func(effects ...string) string { return `{"effects":[` + strings.Join(effects, ",") + `]}` }
	t.Run("K10_law_15_it_is_refused_whole_and_the_error_shows_nothing_of_it", func(t *testing.T) {
		for answer, says := range map[string]string{
			"": "not strict JSON",
			`{"result":"` + strings.Repeat("x", 64<<10) + `"}`: "its result has 65538 bytes, but at most 65536 are allowed",
			"null":              `not an object with a list "effects"`,
			"[]":                `not an object with a list "effects"`,
			`{"effects":{}}`:    `not an object with a list "effects"`,
			in(book) + "x":      "not strict JSON",
			in(book) + in(book): "not strict JSON",
			in(book)[:40]:       "not strict JSON",
			in(strings.Replace(book, secret, "\xff"+secret, 1)):                                  "not strict JSON",
			`{"effects":[],"effects":[]}`:                                                        "not strict JSON",
			in(strings.Replace(book, `"amount"`, `"account":"b","amount"`, 1)):                   "not strict JSON",
			`{"effects":[` + book + `],"outputs":[]}`:                                            `a member other than "effects", "intents" and "result"`,
			in(book, `"`+secret+`"`):                                                             "effect 2: it is not an object",
			in(book, `{"statement":7}`):                                                          "effect 2: it is not an object",
			in(`{"params":{}}`):                                                                  "effect 1: it is not an object",
			in(`{"statement":"tick","name":"` + secret + `"}`):                                   "effect 1: it is not an object",
			in(`{"statement":"` + secret + `"}`):                                                 "effect 1: the policy declares no statement with this name",
			in(`{"statement":"Book"}`):                                                           "the policy declares no statement with this name",
			in(`{"statement":"tick","params":[]}`):                                               `statement tick: "params" is not an object`,
			in(`{"statement":"tick","params":null}`):                                             `statement tick: "params" is not an object`,
			in(`{"statement":"tick","params":{"` + secret + `":1}}`):                             "statement tick: it has a parameter that the policy does not declare",
			in(`{"statement":"book"}`):                                                           "parameter account is missing",
			in(strings.Replace(book, ":1", ":null", 1)):                                          "parameter amount is not of type decimal",
			in(strings.Replace(book, ":1", `:"1x"`, 1)):                                          "parameter amount is not of type decimal",
			in(strings.Replace(book, ":1", `:" 1"`, 1)):                                          "parameter amount is not of type decimal",
			in(strings.Replace(book, ":1", `:"NaN"`, 1)):                                         "parameter amount is not of type decimal",
			in(strings.Replace(book, ":1", `:"`+secret+`"`, 1)):                                  "parameter amount is not of type decimal",
			in(strings.Replace(book, `"`+secret+`"`, "7", 1)):                                    "parameter account is not of type text",
			in(`{"statement":"put","params":{"n":1.5,"yes":true,"any":0}}`):                      "parameter n is not of type integer",
			in(`{"statement":"put","params":{"n":9223372036854775808,"yes":true,"any":0}}`):      "parameter n is not of type integer",
			in(`{"statement":"put","params":{"n":1,"yes":1,"any":0}}`):                           "parameter yes is not of type boolean",
			in(`{"statement":"put","params":{"n":1,"yes":"true","any":0}}`):                      "parameter yes is not of type boolean",
			in(`{"statement":"put","params":{"n":1,"yes":true,"any":0,"note":1}}`):               "parameter note is not of type text",
			in(strings.Split(strings.Repeat(book+"\n", MostEffects+1), "\n")[:MostEffects+1]...): "more than 1000 effects",
		} {
			for _, d := range []Dialect{SQLite(), Postgres()} {
				all, err := effectsOf(t, d).Read([]byte(answer), &semel.Message{Body: []byte(`own`)})
				var decided *semel.HandlerError
				if all != nil || !errors.As(err, &decided) || decided.Decision != semel.DecidePermanent || decided.Reason != reasonname.BadEffects || !strings.Contains(err.Error(), says) {
					t.Errorf("%.200s on %s: %v, %v", answer, d.Name, all, err)
				}
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows the response: %v", err)
				}
			}
		}
	})
	t.Run("K10_what_a_statement_may_not_do_is_refused_at_the_start", func(t *testing.T) {
		_, err := CompileEffects(SQLite(), []Named{{Name: "end", Statement: Statement{SQL: "commit"}}, {Name: "put", Statement: Statement{SQL: "insert into t values (:a)"}}}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "statement end: ") || !strings.Contains(err.Error(), ":a is not bound") {
			t.Error(err)
		}
	})
}
