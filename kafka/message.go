package kafka

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/structured"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers that the source itself adds to a delivery.
const (
	// HeaderTombstone has the value "true" where the record's value was null.
	// The body is empty then, as it is for a value of 0 bytes.
	HeaderTombstone = "semel-tombstone"
	// HeaderLength is the length in bytes, in decimal digits, of the value of
	// a record that is too large, and of a dead letter that was cut because
	// its topic takes no records of its size. A record that has it already is
	// such a letter, and refused as too large.
	HeaderLength = semel.HeaderLength
)

// decoder makes messages of records. It is of the goroutine that fetches.
type decoder struct {
	config *Config
	names  headerNames
}

func (c *decoder) deliveries(records []*record) []source.Delivery {
	if len(records) == 0 {
		return nil
	}
	out := make([]source.Delivery, len(records))
	for i, r := range records {
		message := &r.message
		if r.detached {
			message = new(semel.Message)
		} else {
			r.detach()
		}
		out[i] = source.Delivery{Message: message, Lane: r.lane.id, Before: source.Unknown, Handle: r}
		c.read(r.raw, brokerID(r), &out[i])
	}
	return out
}

// read makes a message of a record. The record is not settled yet, and only
// who fetched it can settle it, so raw is there.
func (c *decoder) read(raw *kgo.Record, id string, d *source.Delivery) {
	m := d.Message
	m.Topic = raw.Topic
	m.Key = raw.Key
	m.Body = raw.Value
	m.Headers = c.headersOf(raw)
	m.Origin = semel.Origin{Partition: raw.Partition, Offset: raw.Offset, BrokerID: id}
	m.Origin.SetTime(timeOf(raw))
	_, cut := m.Headers.Get(HeaderLength)
	switch length := len(raw.Value); {
	case cut:
		d.Refused = semel.ReasonTooLarge
		d.Detail = "it is a dead letter that was cut, because its topic takes no records of its size; the row of its consumer's store has it as it was"
	case length > c.config.MaxRecord:
		m.Body = raw.Value[:kept:kept]
		m.Headers = append(m.Headers, semel.Header{Name: HeaderLength, Value: strconv.AppendInt(nil, int64(length), 10)})
		d.Refused = semel.ReasonTooLarge
		d.Detail = fmt.Sprintf("the value has %d bytes, more than the limit of %d; its first 64 KiB are kept", length, c.config.MaxRecord)
	case c.config.Format == CloudEvents && raw.Value != nil && eventInside(m.Headers):
		d.Undecoded = &event{}
	}
}

// The media types of CloudEvents in structured mode: one event as JSON, and
// what begins like it and is not read.
const (
	mediaEvent  = "application/cloudevents+json"
	mediaEvents = "application/cloudevents"
)

// eventInside reports whether headers say that the body is an event.
func eventInside(headers semel.Headers) bool {
	return strings.HasPrefix(mediaType(headers), mediaEvents)
}

// mediaType is the content-type without its parameters, in lower case.
func mediaType(headers semel.Headers) string {
	for _, h := range headers {
		if strings.EqualFold(h.Name, "content-type") {
			kind, _, _ := strings.Cut(string(h.Value), ";")
			return strings.ToLower(strings.TrimSpace(kind))
		}
	}
	return ""
}

// event decodes a message whose body is an event in structured mode. The event
// says what it is, so headers of the record that say the same are passed over.
type event struct {
	// mu: a source around this one may hand a delivery on twice, and both are then
	// decoded, beside each other.
	mu      sync.Mutex
	decoded bool
	refused semel.Reason
	detail  string
}

func (e *event) Decode(room *reading.Room, m *semel.Message) (refused semel.Reason, detail string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.decoded {
		e.decoded = true
		e.refused, e.detail = decodeEvent(room, m)
	}
	return e.refused, e.detail
}

func decodeEvent(room *reading.Room, m *semel.Message) (refused semel.Reason, detail string) {
	headers, text := m.Headers, m.Body
	if err := parseEvent(room, m); err != nil {
		m.Headers, m.Body = headers, text
		return semel.ReasonMalformed, err.Error()
	}
	for _, h := range headers {
		if !strings.EqualFold(h.Name, "content-type") && !(len(h.Name) > 3 && strings.EqualFold(h.Name[:3], "ce-")) {
			m.Headers = append(m.Headers, h)
		}
	}
	return semel.ReasonNone, ""
}

func parseEvent(room *reading.Room, m *semel.Message) error {
	if mediaType(m.Headers) != mediaEvent {
		return errors.New("the content-type names a form of CloudEvents other than " + mediaEvent + ", which is not read")
	}
	text := m.Body
	m.Body = nil
	return structured.Read(room, m, text)
}

// headersOf copies a record's headers.
func (c *decoder) headersOf(raw *kgo.Record) semel.Headers {
	n := len(raw.Headers)
	if raw.Value == nil {
		n++
	}
	if n == 0 {
		return nil
	}
	headers := make(semel.Headers, 0, n)
	for _, h := range raw.Headers {
		headers = append(headers, semel.Header{Name: c.names.of(h.Key), Value: h.Value})
	}
	if raw.Value == nil {
		headers = append(headers, semel.Header{Name: HeaderTombstone, Value: []byte("true")})
	}
	return headers
}

// headerNames are the headers of CloudEvents, which write ce_ on Kafka where everyone
// else writes ce-. Those seen are kept, so that a message need not make them.
type headerNames map[string]string

// mostHeaderNames bounds them against producers that make names up.
const mostHeaderNames = 256

func (n headerNames) of(key string) string {
	rest, found := strings.CutPrefix(key, "ce_")
	if !found {
		return key
	}
	name, known := n[key]
	if !known {
		name = "ce-" + rest
		if len(n) < mostHeaderNames {
			n[key] = name
		}
	}
	return name
}

// brokerID names a record for as long as its topic lives: the topic's id
// instead of its name, which another topic can have later.
func brokerID(r *record) string {
	b := make([]byte, 0, 64)
	if r.lane.topicID == noTopicID {
		b = append(b, r.raw.Topic...)
	} else {
		b = base64.RawURLEncoding.AppendEncode(b, r.lane.topicID[:])
	}
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(r.raw.Partition), 10)
	b = append(b, '/')
	return string(strconv.AppendInt(b, r.raw.Offset, 10))
}
