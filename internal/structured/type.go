package structured

import "github.com/semel-go/semel"

// Type returns the type of a message as Message.Type does, for code that only passes it on. Unlike Message.Type it
// does not record that the type of a message without a type was requested.
func Type(m *semel.Message) string {
	if m.Attributes.Type != "" {
		return m.Attributes.Type
	}
	kind, _ := m.Headers.Get("ce-type")
	return string(kind)
}
