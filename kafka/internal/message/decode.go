// Package message converts records to messages, and messages to records.
package message

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/internal/structured"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// HeaderTombstone is documented at kafka.HeaderTombstone.
const HeaderTombstone = "semel-tombstone"

// Kept is the number of bytes of the value that a message has if its record is too large.
const Kept = 64 << 10

// Decoder converts records to messages. A Decoder must not be used concurrently.
type Decoder struct {
	// The length of the longest value, in bytes, that is read as a message.
	maxRecord int
	// mayBeEvent is true if a record may contain a CloudEvent in structured mode.
	mayBeEvent bool
	// A cache of converted header names: CloudEvents have the prefix ce_ on Kafka and ce- in a message.
	names map[string]string
}

// NewDecoder returns a decoder for values of at most maxRecord bytes. If events is true, records may contain
// CloudEvents in structured mode.
func NewDecoder(maxRecord int, events bool) *Decoder {
	return &Decoder{maxRecord: maxRecord, mayBeEvent: events, names: map[string]string{}}
}

// Read fills the message of the delivery d from a record. The parameter id becomes the message's Origin.BrokerID.
func (c *Decoder) Read(raw *kgo.Record, id string, d *source.Delivery) {
	m := d.Message
	m.Topic = raw.Topic
	m.Key = raw.Key
	m.Body = raw.Value
	m.Headers = c.headersOf(raw)
	m.Origin = semel.Origin{Partition: raw.Partition, Offset: raw.Offset, BrokerID: id}
	m.Origin.SetTime(TimeOf(raw))
	_, cut := m.Headers.Get(semelheader.Length)
	switch length := len(raw.Value); {
	case cut:
		d.Refused = semel.ReasonTooLarge
		d.Detail = "it is a dead letter that was cut, because its topic does not accept records of its size; the row in its consumer's store has the whole message"
	case length > c.maxRecord:
		m.Body = raw.Value[:Kept:Kept]
		m.Headers = append(m.Headers, semel.Header{Name: semelheader.Length, Value: strconv.AppendInt(nil, int64(length), 10)})
		d.Refused = semel.ReasonTooLarge
		d.Detail = fmt.Sprintf("the value has %d bytes, more than the limit of %d; its first 64 KiB are kept", length, c.maxRecord)
	case c.mayBeEvent && raw.Value != nil && eventInside(m.Headers):
		d.Undecoded = &event{}
	}
}

// TimeOf returns the broker's time of a record; zero if the record has no time.
func TimeOf(raw *kgo.Record) time.Time {
	if raw.Timestamp.UnixMilli() <= 0 { // old clients write -1
		return time.Time{}
	}
	return raw.Timestamp.UTC()
}

// MediaEvent is the media type of a CloudEvent in structured mode as JSON. The constant mediaEvents is the prefix of
// all media types of CloudEvents; other media types than MediaEvent are not supported.
const (
	MediaEvent  = "application/cloudevents+json"
	mediaEvents = "application/cloudevents"
)

// eventInside reports whether headers say that the body is a CloudEvent.
func eventInside(headers semel.Headers) bool {
	return strings.HasPrefix(mediaType(headers), mediaEvents)
}

// mediaType returns the content-type without parameters, in lower case.
func mediaType(headers semel.Headers) string {
	for _, h := range headers {
		if strings.EqualFold(h.Name, "content-type") {
			kind, _, _ := strings.Cut(string(h.Value), ";")
			return strings.ToLower(strings.TrimSpace(kind))
		}
	}
	return ""
}

// event decodes a message whose body is a CloudEvent in structured mode. If the record has headers with the
// names of the event's attributes, those headers are dropped.
type event struct {
	// The mutex is needed because a source that wraps this source may deliver the same message twice, so that both
	// deliveries may be decoded concurrently.
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
	if mediaType(m.Headers) != MediaEvent {
		return semel.ReasonMalformed, "the content-type names an unsupported form of CloudEvents, other than " + MediaEvent
	}
	headers, text := m.Headers, m.Body
	m.Body = nil
	if err := structured.Read(room, m, text); err != nil {
		m.Headers, m.Body = headers, text
		return semel.ReasonMalformed, err.Error()
	}
	for _, h := range headers {
		if !strings.EqualFold(h.Name, "content-type") && !(len(h.Name) > 3 && strings.EqualFold(h.Name[:3], "ce-")) {
			m.Headers = append(m.Headers, h)
		}
	}
	return reasonname.None, ""
}

// headersOf converts a record's headers to headers of a message.
func (c *Decoder) headersOf(raw *kgo.Record) semel.Headers {
	n := len(raw.Headers)
	if raw.Value == nil {
		n++
	}
	if n == 0 {
		return nil
	}
	headers := make(semel.Headers, 0, n)
	for _, h := range raw.Headers {
		headers = append(headers, semel.Header{Name: c.nameOf(h.Key), Value: h.Value})
	}
	if raw.Value == nil {
		headers = append(headers, semel.Header{Name: HeaderTombstone, Value: []byte("true")})
	}
	return headers
}

// The maximum size of the cache, because producers may use arbitrary names.
const mostHeaderNames = 256

func (c *Decoder) nameOf(key string) string {
	rest, found := strings.CutPrefix(key, "ce_")
	if !found {
		return key
	}
	name, known := c.names[key]
	if !known {
		name = "ce-" + rest
		if len(c.names) < mostHeaderNames {
			c.names[key] = name
		}
	}
	return name
}
