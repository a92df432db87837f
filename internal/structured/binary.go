package structured

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/cloudevents"
)

// In binary mode the attributes of an event are headers. If a message has a specversion, it must be an event.
// If the identity of a consumer is the attribute id, every message of the consumer must be an event.

// EventFault returns an error if m must be an event and violates CloudEvents 1.0. A message must be an event if it has
// a specversion, or if the parameter required is true.
func EventFault(m *semel.Message, required bool) error {
	if fault := EventDetail(m, required); fault != "" {
		return fmt.Errorf("%s: %s", semel.ReasonMalformed, fault)
	}
	return nil
}

// EventDetail returns the text of the error that EventFault would return, without its reason. If there is no
// error, EventDetail returns an empty string.
func EventDetail(m *semel.Message, required bool) string {
	if _, claims := m.Headers.Get("ce-specversion"); !claims && !required {
		return ""
	}
	return cloudevents.Fault(func(name string) (string, bool) {
		if name == "type" && m.Attributes.Type != "" {
			return m.Attributes.Type, true
		}
		value, set := m.Headers.Get("ce-" + name)
		return string(value), set
	})
}
