package policy

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/selectors"
)

// Unhandled returns an error if the consumer has no handler for the type of a message. The error names the
// type and a remedy.
func (c *Consumer) Unhandled(m *semel.Message) error {
	if len(c.Handler.Types) == 0 {
		return nil
	}
	handlers := map[string]func(context.Context, struct{}, *semel.Message) error{}
	for _, h := range c.Handler.Types {
		handlers[h.Type] = func(context.Context, struct{}, *semel.Message) error { return nil }
	}
	if consumer.ByType(handlers)(context.Background(), struct{}{}, m) == nil {
		return nil
	}
	if m.Type() == "" {
		return fmt.Errorf("the message has no type, so no handler of consumer %s is for it; if its type is in another place, name the place with the key type of the consumer; otherwise discard the message", c.Name)
	}
	kind := fmt.Sprintf("type %q", m.Type())
	if schema := m.DataSchema(); schema != "" {
		kind += fmt.Sprintf(" with schema %q", schema)
	}
	return fmt.Errorf("the policy has no handler for %s; add one at handler.types of consumer %s, or discard the message", kind, c.Name)
}

// Typed returns the message with the type that a handler of the consumer sees. If the consumer has no selector of
// types, or if the selector finds no type in the message, Typed returns the message unchanged.
func (c *Consumer) Typed(m *semel.Message) *semel.Message {
	by, err := selectors.Parse(c.Type)
	if c.Type == "" || err != nil {
		return m
	}
	kind, err := by.TextIn(nil, m)
	if err != nil || kind == "" {
		return m
	}
	typed := *m
	typed.Attributes.Type = kind
	return &typed
}
