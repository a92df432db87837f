package structured

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/cloudevents"
)

// In binary mode the attributes of an event are headers. A message with a specversion must be an event, and so
// must every message of a consumer whose identity is the attribute id.

// EventFault returns why m violates CloudEvents 1.0, and nil if it does not. m must be an event if it has a
// specversion or required is set.
func EventFault(m *semel.Message, required bool) error {
	if fault := EventDetail(m, required); fault != "" {
		return fmt.Errorf("%s: %s", semel.ReasonMalformed, fault)
	}
	return nil
}

// EventDetail returns the text of EventFault's error; empty if there is none.
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
