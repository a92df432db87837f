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
