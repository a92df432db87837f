package structured

import "github.com/semel-go/semel"

// Type returns the type of a message as Message.Type does, for code that only passes the type on. Unlike
// Message.Type, Type does not record that a program has read the type of a message without a type.
func Type(m *semel.Message) string {
	if m.Attributes.Type != "" {
		return m.Attributes.Type
	}
	kind, _ := m.Headers.Get("ce-type")
	return string(kind)
}
