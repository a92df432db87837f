package policy

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
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
	kind := fmt.Sprintf("type %q", m.Type())
	if schema := m.DataSchema(); schema != "" {
		kind += fmt.Sprintf(" with schema %q", schema)
	}
	return fmt.Errorf("the policy has no handler for %s; add one at handler.types of consumer %s, or discard the message", kind, c.Name)
}
