package structured

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/cloudevents"
)

// An event in binary mode has its attributes in headers. What has a
// specversion says that it is one; with an identity by the attribute id a
// message has to be one.

// EventFault says in which way m is no event of CloudEvents 1.0 although it
// claims, or has, to be one; nil otherwise.
func EventFault(m *semel.Message, required bool) error {
	if fault := EventDetail(m, required); fault != "" {
		return fmt.Errorf("%s: %s", semel.ReasonMalformed, fault)
	}
	return nil
}

// EventDetail is EventFault without the reason; empty if there is none.
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
