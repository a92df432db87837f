package sqlhandler

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

// refusedFor returns the text of an error that ends a message as malformed. The test fails if the error is
// another error or contains secret.
func refusedFor(t *testing.T, err error, secret string) string {
	t.Helper()
	var decided *semel.HandlerError
	if !errors.As(err, &decided) || decided.Decision != semel.DecidePermanent || decided.Reason != semel.ReasonMalformed {
		t.Fatalf("%v", err)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error shows the value: %v", err)
	}
	return err.Error()
}

func TestTextThatIsReadAsNaNOrInfinityIsRejected(t *testing.T) {
	for _, d := range []Dialect{SQLite(), Postgres()} {
		h, err := Compile(d, Config{Params: []Param{{Name: "amount", Selector: "body:/amount"}},
			Statements: []Statement{{SQL: "update accounts set balance = balance + :amount"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"NaN", "nan", "Infinity", "-infinity", "inf", "+INF", " NaN\t", "\r\n-Inf\v\f", "+nan"} {
			t.Run(fmt.Sprintf("%s %q", d.Name, text), func(t *testing.T) {
				m := body(`{"amount": %s}`, quoteJSON(text))
				if _, err := h.values(m); !strings.Contains(refusedFor(t, err, string(quoteJSON(text))), "parameter amount: body:/amount is a text that a number's column reads as NaN or as an infinity") {
					t.Error(err)
				}
			})
		}
		for _, text := range []string{"Nancy", "information", "", "+", "12", "NaNa", "1e400"} {
			if values, err := h.values(body(`{"amount": %s}`, quoteJSON(text))); err != nil || values[0] != text {
				t.Errorf("%s: %q: %v, %v", d.Name, text, values, err)
			}
		}
	}
	t.Run("also_from_a_header_and_a_key_and_not_where_the_policy_itself_says_it", func(t *testing.T) {
		m := body("")
		m.Key, m.Headers = []byte("NaN"), semel.Headers{{Name: "amount", Value: []byte("-Infinity")}}
		for selector, refused := range map[string]bool{"key": true, "header:amount": true, "const:infinity": false} {
			h := compile(t, Config{Params: []Param{{Name: "a", Selector: selector}}, Statements: []Statement{{SQL: "select :a"}}})
			if _, err := h.values(m); (err != nil) != refused {
				t.Errorf("%s: %v", selector, err)
			}
		}
	})
	t.Run("SQLite_calculates_with_a_number_beyond_a_float_as_with_an_infinity", func(t *testing.T) {
		for _, kind := range []ParamType{"", Decimal} {
			c := Config{Params: []Param{{Name: "a", Selector: "body:/a", Type: kind}}, Statements: []Statement{{SQL: "select :a"}}}
			_, err := compile(t, c).values(body(`{"a": -1e400}`))
			if !strings.Contains(refusedFor(t, err, "1e400"), "it would become an infinity") {
				t.Error(err)
			}
			h, _ := Compile(Postgres(), c)
			if values, err := h.values(body(`{"a": -1e400}`)); err != nil || values[0] != "-1e400" {
				t.Errorf("%v, %v", values, err)
			}
		}
		all, err := effectsOf(t, SQLite()).Read([]byte(`{"effects":[{"statement":"book","params":{"account":"a","amount":"1e400"}}]}`), nil)
		if err == nil || !strings.Contains(err.Error(), "it would become an infinity") {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestTypedParameters(t *testing.T) {
	type both [2]any // expected values in SQLite and in PostgreSQL
	for _, c := range []struct {
		kind  ParamType
		value string
		want  both
		says  string
	}{
		{Decimal, `"0.10"`, both{0.1, "0.1"}, ""},
		{Decimal, `12345678901234567890.123`, both{"12345678901234567890.123", "12345678901234567890.123"}, ""},
		{Decimal, `"NaN"`, both{}, "is not of type decimal"},
		{Decimal, `"Infinity"`, both{}, "is not of type decimal"},
		{Decimal, `"1,5"`, both{}, "is not of type decimal"},
		{Decimal, `""`, both{}, "is not of type decimal"},
		{Integer, `"-7"`, both{int64(-7), "-7"}, ""},
		{Integer, `7.5`, both{}, "is not of type integer"},
		{Integer, `"inf"`, both{}, "is not of type integer"},
		{Text, `"NaN"`, both{"NaN", "NaN"}, ""},
		{Text, `7`, both{}, "is not of type text"},
		{Boolean, `true`, both{true, "true"}, ""},
		{Boolean, `"true"`, both{}, "is not of type boolean"},
		{Timestamp, `"2026-03-01T01:30:00.25+02:00"`, both{"2026-02-28T23:30:00.25Z", "2026-02-28T23:30:00.25Z"}, ""},
		{Timestamp, `"infinity"`, both{}, "is not a timestamp like 2006-01-02T15:04:05Z"},
		{Timestamp, `"2026-03-01"`, both{}, "is not a timestamp"},
		{Timestamp, `1772328600`, both{}, "is not of type timestamp"},
		{JSON, `{"a": [1.50, "NaN"]}`, both{`{"a": [1.50, "NaN"]}`, `{"a": [1.50, "NaN"]}`}, ""},
		{JSON, `"NaN"`, both{`"NaN"`, `"NaN"`}, ""},
	} {
		for i, d := range []Dialect{SQLite(), Postgres()} {
			h, err := Compile(d, Config{Params: []Param{{Name: "v", Selector: "body:/v", Type: c.kind}}, Statements: []Statement{{SQL: "select :v"}}})
			if err != nil {
				t.Fatal(err)
			}
			values, err := h.values(body(`{"v": %s}`, c.value))
			switch {
			case c.says == "" && (err != nil || !reflect.DeepEqual(values[0], c.want[i])):
				t.Errorf("%s %s on %s: %T %v, %v", c.kind, c.value, d.Name, values, values, err)
			case c.says != "" && !strings.Contains(refusedFor(t, err, c.value), "parameter v: body:/v "+c.says):
				t.Errorf("%s %s on %s: %v", c.kind, c.value, d.Name, err)
			}
		}
	}
	t.Run("a_header_is_text_that_may_be_a_number_or_a_boolean", func(t *testing.T) {
		m := &semel.Message{Headers: semel.Headers{{Name: "n", Value: []byte("12")}, {Name: "b", Value: []byte("true")}, {Name: "x", Value: []byte{0xff}}}}
		h := compile(t, Config{Params: []Param{{Name: "n", Selector: "header:n", Type: Integer}, {Name: "b", Selector: "header:b", Type: Boolean},
			{Name: "none", Selector: "header:none?", Type: Decimal}}, Statements: []Statement{{SQL: "select :n, :b, :none"}}})
		if values, err := h.values(m); err != nil || !reflect.DeepEqual(values, []any{int64(12), true, nil}) {
			t.Errorf("%v, %v", values, err)
		}
		for _, kind := range []ParamType{Text, JSON, Decimal} {
			h := compile(t, Config{Params: []Param{{Name: "x", Selector: "header:x", Type: kind}}, Statements: []Statement{{SQL: "select :x"}}})
			if values, err := h.values(m); err == nil {
				t.Errorf("%s: %v", kind, values)
			}
		}
	})
}
