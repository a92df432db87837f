package policy

import (
	"testing"

	"github.com/semel-go/semel"
)

func TestAMessageWithoutAHandlerForItsType(t *testing.T) {
	typed := &Consumer{Name: "billing", Handler: Handler{Types: []TypedHandler{{Type: "paid"}, {Type: "refunded@2"}}}}
	message := func(kind, schema string) *semel.Message {
		return &semel.Message{Headers: semel.Headers{{Name: "ce-type", Value: []byte(kind)}, {Name: "ce-dataschema", Value: []byte(schema)}}}
	}
	for name, c := range map[string]struct {
		of   *Consumer
		m    *semel.Message
		want string
	}{
		"one handler for all types": {&Consumer{Name: "billing", Handler: Handler{SQL: &SQL{}}}, message("lost", ""), ""},
		"a type with a handler":     {typed, message("paid", "https://shop/paid/7"), ""},
		"a version with a handler":  {typed, message("refunded", "https://shop/refunded/2"), ""},
		"a type without a handler":  {typed, message("lost", ""), `the policy has no handler for type "lost"; add one at handler.types of consumer billing, or discard the message`},
		"a version without a handler": {typed, message("refunded", "https://shop/refunded/3"),
			`the policy has no handler for type "refunded" with schema "https://shop/refunded/3"; add one at handler.types of consumer billing, or discard the message`},
		"no type": {typed, message("", ""),
			"the message has no type, so no handler of consumer billing is for it; if its type is in another place, name the place with the key type of the consumer; otherwise discard the message"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := c.of.Unhandled(c.m); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTheTypeThatAHandlerSees(t *testing.T) {
	for name, c := range map[string]struct{ by, stored, body, want string }{
		"no selector":               {"", "paid", `{"type":"refunded"}`, "paid"},
		"a type in the body":        {"body:/type", "paid", `{"type":"refunded"}`, "refunded"},
		"a type of an untyped row":  {"body:/type", "", `{"type":"refunded"}`, "refunded"},
		"a number":                  {"body:/type", "", `{"type":7}`, "7"},
		"a body without a type":     {"body:/type", "paid", `{}`, "paid"},
		"a body that is no JSON":    {"body:/type", "paid", `{`, "paid"},
		"a body that was not read":  {"body:/type", "paid", "", "paid"},
		"a header that was renamed": {"header:event", "paid", "", "paid"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &semel.Message{Body: []byte(c.body), Attributes: semel.Attributes{Type: c.stored}}
			if got := (&Consumer{Type: c.by}).Typed(m).Type(); got != c.want || m.Type() != c.stored {
				t.Errorf("the type is %q, want %q; the message itself has %q", got, c.want, m.Type())
			}
		})
	}
}
