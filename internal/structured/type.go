package structured

import "github.com/semel-go/semel"

// Type returns the type of a message as Message.Type does, for code that only passes it on:
// it does not note that somebody asked a message without a type for one.
func Type(m *semel.Message) string {
	if m.Attributes.Type != "" {
		return m.Attributes.Type
	}
	kind, _ := m.Headers.Get("ce-type")
	return string(kind)
}
