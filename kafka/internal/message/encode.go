package message

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/cloudevents"
	"github.com/semel-go/semel/internal/structured"
	"github.com/semel-go/semel/kafka/internal/deadletter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The id of a published record is made from this text, the identity and the topic. The text must never change, because
// after an update of Semel a message whose record is in progress would get another id.
const purpose = "publish"

// CloudEvents requires a source and a type. The constants are the values for a message without source or type.
const (
	sourceOfNone = "semel"
	typeOfNone   = "semel.message"
)

// Record returns the record that publishes a message to a topic.
func Record(m *semel.Message, topic string) *kgo.Record {
	record := &kgo.Record{Topic: topic, Key: m.Key, Value: m.Body, Headers: headersFor(m, topic)}
	_, tombstone := m.Headers.Get(HeaderTombstone)
	switch {
	case tombstone && len(m.Body) == 0:
		record.Value = nil
	case m.Body == nil: // on Kafka a null value deletes the key in a compacted topic
		record.Value = []byte{}
	}
	return record
}

// headersFor returns the headers of m's record: the headers of m, and the attributes of a CloudEvent in binary
// mode (https://github.com/cloudevents/spec, Kafka Protocol Binding for CloudEvents 1.0.2, section 3.2). If
// the body of m is a whole CloudEvent, the record has only the headers of m, because the event itself contains
// the id.
func headersFor(m *semel.Message, topic string) []kgo.RecordHeader {
	if eventInside(m.Headers) && m.ID() == "" {
		return (&recordHeaders{}).copy(m).all
	}
	h := &recordHeaders{values: attributes(m, topic)}
	if !isOwnID(m) {
		for _, c := range m.Causation() {
			h.override(strings.ToLower(c.Name), string(c.Value))
		}
	}
	if kind, ok := m.Headers.Get("ce-datacontenttype"); ok {
		h.override("ce-datacontenttype", "") // with Kafka, the header content-type has this attribute
		h.override("content-type", string(kind))
	}
	return h.copy(m).rest().all
}

// isOwnID reports whether the message is identified by the id of its own event, so that readers of the record can use
// the same id.
func isOwnID(m *semel.Message) bool {
	return m.ID() == m.Identity.ID && (m.Identity.Source == "" || m.Identity.Source == m.Source())
}

// The function attributes returns the attributes of the CloudEvent in a record.
func attributes(m *semel.Message, topic string) []attribute {
	id := m.Identity.ID
	if !isOwnID(m) {
		id = m.OutputID(purpose, topic)
	}
	version, _ := m.Headers.Get("ce-specversion")
	all := []attribute{
		{"ce-specversion", cmp.Or(string(version), cloudevents.Version)},
		{"ce-id", id},
		{"ce-source", cmp.Or(m.Source(), m.Identity.Source, sourceOfNone)},
		{"ce-type", cmp.Or(structured.Type(m), typeOfNone)},
		{"ce-subject", m.Subject()},
		{"ce-dataschema", m.DataSchema()},
	}
	if at := m.Attributes.Time; !at.IsZero() {
		all = append(all, attribute{"ce-time", at.Format(time.RFC3339Nano)})
	}
	return all
}

// attribute is a header and its required value. If the value is empty, the record must not have the header.
type attribute struct{ name, value string }

type recordHeaders struct {
	values []attribute
	all    []kgo.RecordHeader
}

// override sets a header to a value that differs from the message's value.
func (h *recordHeaders) override(name, value string) {
	h.values = append(h.values, attribute{name, value})
}

// copy copies the headers of m in their order. The method leaves out headers that have a value in h.values, and headers
// that Semel added to the message or to a dead letter.
func (h *recordHeaders) copy(m *semel.Message) *recordHeaders {
	for _, header := range m.Headers {
		replaced := slices.ContainsFunc(h.values, func(a attribute) bool { return strings.EqualFold(a.name, header.Name) })
		if _, letter := deadletter.OfLetter(header.Name); !replaced && !letter && header.Name != HeaderTombstone {
			h.add(header.Name, header.Value)
		}
	}
	return h
}

// rest adds a header for each value in h.values that is not empty.
func (h *recordHeaders) rest() *recordHeaders {
	for _, a := range h.values {
		if a.value != "" {
			h.add(a.name, []byte(a.value))
		}
	}
	return h
}

// add adds a header and converts the prefix ce- to ce_.
func (h *recordHeaders) add(name string, value []byte) {
	if len(name) > 3 && strings.EqualFold(name[:3], "ce-") {
		name = "ce_" + strings.ToLower(name[3:])
	}
	h.all = append(h.all, kgo.RecordHeader{Key: name, Value: value})
}
