package selectors

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
)

func mustSelect(t *testing.T, text string, m *semel.Message) Value {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Value(m)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestASelectorFindsItsValue(t *testing.T) {
	m := &semel.Message{
		Topic:   "payments",
		Key:     []byte("k"),
		Headers: semel.Headers{{Name: "X-Account", Value: []byte("17")}, {Name: "ce-type", Value: []byte("paid")}, {Name: "ce-id", Value: []byte("e1")}, {Name: "empty"}},
		Body:    []byte(`{"a":{"b":[10,{"c":"x\ny"}]},"n":9007199254740993.10,"t":true,"f":false,"z":null,"o":{ "p":1 },"e":"","s":"é","q?":1}`),
		Attributes: semel.Attributes{
			Source: "shop", Subject: "order 7", Time: time.Date(2024, 5, 6, 7, 8, 9, 10, time.UTC),
		},
		Origin: semel.Origin{Partition: 3, Offset: 42},
	}
	for selector, want := range map[string]Value{
		"header:x-account": {Bytes, []byte("17")}, "header:X-ACCOUNT": {Bytes, []byte("17")}, "header:none": {}, "header:empty": {Bytes, nil},
		"body:/a/b/0": {Number, []byte("10")}, "body:/a/b/1/c": {String, []byte("x\ny")}, "body:/a/b/9": {}, "body:/none": {}, "body:/none?": {},
		"body:/n": {Number, []byte("9007199254740993.10")}, "body:/t": {Bool, []byte("true")}, "body:/f": {Bool, []byte("false")},
		"body:/z": {Null, []byte("null")}, "body:/o": {JSON, []byte(`{ "p":1 }`)}, "body:/e": {String, nil}, "body:/s": {String, []byte("é")},
		"body:": {Bytes, m.Body}, "body:?": {Bytes, m.Body}, "key": {Bytes, []byte("k")}, "topic": {String, []byte("payments")},
		"type": {String, []byte("paid")}, "id": {String, []byte("e1")}, "source": {String, []byte("shop")}, "subject?": {String, []byte("order 7")},
		"time": {String, []byte("2024-05-06T07:08:09.00000001Z")}, "const:": {String, nil}, "const:a:b?": {String, []byte("a:b?")},
		"partition": {Number, []byte("3")}, "offset": {Number, []byte("42")},
	} {
		got := mustSelect(t, selector, m)
		if got.Kind() != want.kind || string(got.text) != string(want.text) {
			t.Errorf("%s: kind %d %q, want kind %d %q", selector, got.kind, got.text, want.kind, want.text)
		}
	}
	for _, selector := range []string{"key", "topic", "type", "id", "source", "subject", "time", "partition", "offset", "body:", "body:/x"} {
		if v := mustSelect(t, selector, &semel.Message{Origin: semel.Origin{Partition: -1, Offset: -1}}); !v.IsMissing() {
			t.Errorf("%s of an empty message is %q", selector, v.Text())
		}
	}
}

func TestAccessorsByKind(t *testing.T) {
	m := withBody(`{"n":1.50,"b":true,"f":false,"z":null,"s":"true"}`)
	number := mustSelect(t, "body:/n", m)
	if number.Number() != "1.50" || number.Decimal() != "1.5" || number.Text() != "1.50" || number.IsMissing() || number.Bool() {
		t.Errorf("%+v", number)
	}
	for selector, want := range map[string]bool{"body:/b": true, "body:/f": false, "body:/s": false, "body:/none": false, "body:/z": false} {
		v := mustSelect(t, selector, m)
		if v.Bool() != want || v.Number() != "" || v.Decimal() != "" {
			t.Errorf("%s: %+v", selector, v)
		}
	}
	null := mustSelect(t, "body:/z", m)
	if !null.IsNull() || null.IsMissing() || null.Bytes() != nil || null.Text() != "" {
		t.Errorf("%+v", null)
	}
	if missing := (Value{}); !missing.IsMissing() || missing.IsNull() || missing.Bytes() != nil {
		t.Errorf("%+v", missing)
	}
}

func TestAnUnknownSelectorIsRejectedWithASuggestion(t *testing.T) {
	for text, want := range map[string]string{
		"":            "use one of header:NAME",
		"headr:x":     `did you mean "header"`,
		"Header:x":    `did you mean "header"`,
		"bdoy:/x":     `did you mean "body"`,
		"sourc?":      `did you mean "source"`,
		"/x":          "use one of",
		"payload:/x":  "use one of header:NAME, body:/json/pointer",
		"header":      "write header:NAME",
		"header:":     "write header:NAME",
		"header:?":    "write header:NAME",
		"body":        "body:/json/pointer",
		"body:x":      "begins with a slash: /x",
		"body:/a~x":   "~0",
		"const":       "const:TEXT",
		"const?":      "const:TEXT",
		"key:x":       "write key",
		"id:":         "write id",
		"offset:1":    "write offset",
		"partition:?": "write partition",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	if got := probablyMeant("xyzzy"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestPropertiesOfSelectors(t *testing.T) {
	for text, want := range map[string][3]bool{ // the values are: optional, coordinate, constant
		"header:x": {}, "body:/x?": {true, false, false}, "offset": {false, true, false}, "partition?": {true, true, false},
		"const:x?": {false, false, true}, "key?": {true, false, false}, "time": {},
	} {
		s, err := Parse(text)
		if got := [3]bool{s.Optional(), s.Coordinate(), s.Constant()}; err != nil || got != want || s.String() != text {
			t.Errorf("%s: %v %v %q", text, err, got, s)
		}
	}
}

func TestSeveralSelectorsParseTheBodyOnce(t *testing.T) {
	var selectors []Selector
	for _, text := range []string{"body:/a", "body:/b", "header:x", "body:/a"} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		selectors = append(selectors, s)
	}
	values, err := Select(withBody(`{"a":"1\u0032","b":"\u0033"}`), selectors)
	if err != nil || values[0].Text() != "12" || values[1].Text() != "3" || !values[2].IsMissing() || values[3].Text() != "12" {
		t.Errorf("%v %+v", err, values)
	}
	one := testing.AllocsPerRun(100, func() { _, _ = Select(withBody(`{"a":1,"b":2}`), selectors[:1]) })
	two := testing.AllocsPerRun(100, func() { _, _ = Select(withBody(`{"a":1,"b":2}`), selectors[:2]) })
	if two > one {
		t.Errorf("a second selector costs %v allocations: the body was read again", two-one)
	}
}

func TestValuesAreAppendedToTheCallersSlice(t *testing.T) {
	selectors := parsed(t, "body:/a", "header:x", "body:/c")
	m := withBody(`{"a":"payment","c":3}`)
	room := new(reading.Room)
	if _, err := room.Body(m.Body); err != nil {
		t.Fatal(err)
	}
	m.Strict = room.Proof(m.Body)
	stale := bytesValue([]byte("stale"))
	given := append(make([]Value, 0, 4), stale, stale, stale, stale)[:1]
	values, err := Append(given, m, selectors)
	if err != nil || len(values) != 4 || &values[0] != &given[0] || values[0].Text() != "stale" || values[1].Text() != "payment" || !values[2].IsMissing() || values[3].Text() != "3" {
		t.Errorf("%v %+v", err, values)
	}
	if values, err = Append(given, withBody(`{`), selectors); err == nil || len(values) != 1 {
		t.Errorf("%v %+v", err, values)
	}
	m, headers := &semel.Message{Headers: semel.Headers{{Name: "x", Value: []byte("1")}}}, selectors[1:2]
	if n := testing.AllocsPerRun(100, func() { values, _ = Append(given, m, headers) }); n != 0 || values[1].Text() != "1" {
		t.Errorf("where there is room, there are %v allocations", n)
	}
}

func TestAMalformedBodyIsAnErrorAndNeverRepaired(t *testing.T) {
	malformed := func(body string) func(*testing.T) {
		return func(t *testing.T) {
			s, err := Parse("body:/a?")
			if err != nil {
				t.Fatal(err)
			}
			v, err := s.Value(withBody(body))
			var fault *Error
			if !errors.As(err, &fault) || fault.Reason != semel.ReasonMalformed || fault.Selector != "body:/a?" || !v.IsMissing() {
				t.Errorf("%q: %v %v", body, v, err)
			}
		}
	}
	t.Run("an undecodable body", malformed("\x00\x01"))
	t.Run("trap_81_a_lone_surrogate", malformed(`{"a":"\ud800"}`))
	t.Run("trap_81_invalid_utf8", malformed("{\"a\":\"\xff\"}"))
	t.Run("a repeated name", malformed(`{"a":1,"a":1}`))
	t.Run("trap_80_an_escaped_NUL_is_no_fault", func(t *testing.T) {
		if v := mustSelect(t, "body:/a", withBody(`{"a":"\u0000"}`)); v.Text() != "\x00" {
			t.Errorf("%q", v.Text())
		}
	})
	t.Run("trap_81_a_number_beyond_every_float_is_no_fault", func(t *testing.T) {
		if v := mustSelect(t, "body:/a", withBody(`{"a":1e400000}`)); v.Number() != "1e400000" {
			t.Errorf("%q", v.Number())
		}
	})
	t.Run("the whole body need not be JSON", func(t *testing.T) {
		if v := mustSelect(t, "body:", withBody("\xff")); v.Text() != "\xff" {
			t.Errorf("%q", v.Text())
		}
	})
}

func withBody(body string) *semel.Message {
	return &semel.Message{Body: []byte(body)}
}

func parsed(t *testing.T, texts ...string) (all []Selector) {
	t.Helper()
	for _, text := range texts {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
