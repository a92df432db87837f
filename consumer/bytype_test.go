package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

func TestAMessageGoesToTheHandlerOfItsType(t *testing.T) {
	var ran string
	handler := func(name string) func(context.Context, int, *semel.Message) error {
		return func(context.Context, int, *semel.Message) error { ran = name; return nil }
	}
	handlers := map[string]func(context.Context, int, *semel.Message) error{}
	for _, name := range []string{"paid", "paid@2", "paid@https://example.com/paid/3", "paid@3", "sent@1"} {
		handlers[name] = handler(name)
	}
	handle := ByType(handlers)
	run := func(kind, schema string) error {
		ran = ""
		return handle(t.Context(), 0, &semel.Message{Attributes: semel.Attributes{Type: kind, DataSchema: schema}})
	}
	t.Run("C15_the_most_exact_handler_runs", func(t *testing.T) {
		for schema, want := range map[string]string{
			"": "paid", "1": "paid", "2": "paid@2", "https://example.com/paid/2": "paid@2", "urn:example:paid:2": "paid@2",
			"https://example.com/paid/3": "paid@https://example.com/paid/3", "https://example.com/other/3": "paid@3", "https://example.com/paid/4": "paid",
		} {
			if err := run("paid", schema); err != nil || ran != want {
				t.Errorf("schema %q: %q ran (%v), want %q", schema, ran, err, want)
			}
		}
	})
	t.Run("C15_no_handler_is_the_terminal_failure_unknown_type", func(t *testing.T) {
		for _, unknown := range [][2]string{{"lost", ""}, {"", ""}, {"Paid", ""}, {"sent", ""}, {"sent", "2"}} {
			err := run(unknown[0], unknown[1])
			var fault *semel.HandlerError
			if !errors.As(err, &fault) || fault.Decision != semel.DecidePermanent || fault.Reason != reasonname.UnknownType || ran != "" {
				t.Errorf("%q: %v, %q ran", unknown, err, ran)
			}
		}
		if err := run("lost", "x\ny"); !strings.Contains(err.Error(), "unknown type: no handler for type \"lost\", schema \"x\\ny\"; there are handlers for paid, paid@2") {
			t.Errorf("%v", err)
		}
		if err := run("", ""); !strings.Contains(err.Error(), "unknown type: the message has no type; there are handlers for paid, paid@2") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a later change of the map changes nothing", func(t *testing.T) {
		handlers["new"] = handler("new")
		if err := run("new", ""); err == nil {
			t.Error("the map is shared with the caller")
		}
	})
	t.Run("a nil handler is refused at start", func(t *testing.T) {
		defer func() {
			if text := fmt.Sprint(recover()); !strings.Contains(text, "the handler of paid is nil") {
				t.Error(text)
			}
		}()
		ByType(map[string]func(context.Context, int, *semel.Message) error{"paid": nil})
	})
}
