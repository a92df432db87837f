package semel

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/cloudevents"
	"github.com/semel-go/semel/internal/strictjson"
)

// Message is a message with the data of one delivery. A handler must not change the message, because later attempts get
// the same Message.
type Message struct {
	// Topic is the topic, queue or file from which the message was delivered.
	Topic string
	// Key is the producer's routing key; nil if there is none.
	Key []byte
	// Headers are the producer's headers in their original order. A name may occur several times.
	Headers Headers
	// Body is the payload, byte for byte.
	Body []byte
	// Attributes are the CloudEvents attributes, for transports in which they are not headers.
	Attributes Attributes
	// Origin is the position of the delivery in the broker. Origin is for logs and for parameters. Do not use
	// Origin as identity, because it may differ when the message is delivered again.
	Origin Origin
	// Identity is set by the engine before a handler sees the message.
	Identity Key
	// Attempt is the number of the current run of the handler, from 1, counted by the process. Runs that do not count
	// as attempts are not included. The engine sets Attempt. A caller of consumer.Consumer.Process sets Attempt to the
	// broker's delivery count, including this delivery, or to 0 if the broker does not count deliveries. If the broker
	// also counts deliveries that were not attempts, see consumer.Disposition.
	Attempt int
	// Replayed is the replay to which the message belongs, or nil if there is none. The engine sets Replayed. Handlers
	// must call the method Replay instead, and must not change the value, because all messages of the replay share it.
	Replayed *Replay `json:"-"`
	// Strict is for Semel only. Semel sets Strict after it has read Body as strict JSON, so that values can be found
	// without parsing Body again. Strict is valid only for the slice in Body. In a copy of the message with another
	// Body, Strict has no effect.
	Strict strictjson.Proof `json:"-"`
}

// NewMessage returns a message as a handler sees it in its first attempt, with an identity, a body and
// headers. NewMessage is for tests of handlers, because IdempotencyKey and OutputID panic if a message has no
// identity. NewMessage sets the CloudEvents attributes id and source from the identity. Origin has no
// position. NewMessage panics if of.ID is empty.
func NewMessage(of Key, body []byte, headers ...Header) *Message {
	m := &Message{
		Headers: headers, Body: body, Attributes: Attributes{ID: of.ID, Source: of.Source},
		Origin: Origin{Partition: -1, Offset: -1}, Identity: of, Attempt: 1,
	}
	m.mustIdentity()
	return m
}

// Attributes are the CloudEvents attributes of a message.
type Attributes struct {
	ID, Source, Type, Subject, DataSchema string
	Time                                  time.Time
}

// Origin is the position of a delivery in the broker.
type Origin struct {
	// Partition is -1 if the broker has no partitions.
	Partition int32
	// Written is the broker's timestamp of the record in seconds since 1970, or 0 if there is none. See Time.
	Written uint32
	// Offset is the broker's number of the delivery in its lane. For a file, Offset is the byte at which the line
	// begins. If the broker has no such number, Offset is -1.
	Offset int64
	// BrokerID is the broker's own id of the message, or empty if there is none.
	BrokerID string
}

// Time returns the broker's timestamp of the record, to the second. If there is none, Time returns the zero
// time.
func (o Origin) Time() time.Time {
	if o.Written == 0 {
		return time.Time{}
	}
	return time.Unix(int64(o.Written), 0)
}

// SetTime sets Written. The zero time sets 0. Times before 1970 or after 2106 are set to the nearest time that
// Written can hold.
func (o *Origin) SetTime(at time.Time) {
	o.Written = 0
	if !at.IsZero() {
		o.Written = uint32(min(max(at.Unix(), 1), math.MaxUint32))
	}
}

// Header is one header of a message.
type Header struct {
	Name  string
	Value []byte
}

// Headers are the headers of a message, in the producer's order.
type Headers []Header

// Get returns the value of the first header with the given name, ignoring case. If there is no such header, the bool is
// false.
func (h Headers) Get(name string) ([]byte, bool) {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return h[i].Value, true
		}
	}
	return nil, false
}

// Key is the identity of a message for one consumer. Two messages are copies of one another if and only if their
// keys are equal.
type Key struct {
	// Consumer is the name of the consumer. Consumers with different names process messages independently.
	Consumer string
	// Source is the name of the producer. Source may be empty.
	Source string
	// ID is the producer's id of the message. ID has 1 to MaxID bytes of any value.
	ID string
}

// MaxID is the maximum length of an id in bytes. A longer id cannot be used as identity.
const MaxID = 4096

// ID returns the producer's id of the message: the attribute id or, without it, the header ce-id. If there is
// neither, ID returns an empty string.
func (m *Message) ID() string { return m.attribute(m.Attributes.ID, "ce-id") }

// Source returns the name of the producer: the attribute source or, without it, the header ce-source.
func (m *Message) Source() string { return m.attribute(m.Attributes.Source, "ce-source") }

// Type returns the type of the event: the value that consumer.Config.Type finds or, without it, the attribute
// type or, without it, the header ce-type.
func (m *Message) Type() string {
	kind := m.attribute(m.Attributes.Type, "ce-type")
	if kind == "" {
		m.Strict.AskForType()
	}
	return kind
}

// Subject returns the subject of the event: the attribute subject or, without it, the header ce-subject.
func (m *Message) Subject() string { return m.attribute(m.Attributes.Subject, "ce-subject") }

// DataSchema returns the schema of the body: the attribute dataschema or, without it, the header
// ce-dataschema.
func (m *Message) DataSchema() string { return m.attribute(m.Attributes.DataSchema, "ce-dataschema") }

// Time returns the producer's timestamp of the event: the attribute time or, without it, the header ce-time
// in RFC 3339. If there is neither, or if the header is malformed, Time returns the zero time.
func (m *Message) Time() time.Time {
	if !m.Attributes.Time.IsZero() {
		return m.Attributes.Time
	}
	t, _ := cloudevents.Time(m.attribute("", "ce-time"))
	return t
}

func (m *Message) attribute(field, header string) string {
	if field != "" {
		return field
	}
	v, _ := m.Headers.Get(header)
	return string(v)
}

// JSON decodes the body of m into a T with encoding/json. The error of JSON is permanent, because a retry
// gets the same body. The text of the error names the position but not the value, so that no payload gets
// into logs. errors.As finds the error of encoding/json.
func JSON[T any](m *Message) (T, error) {
	var v T
	if err := json.Unmarshal(m.Body, &v); err != nil {
		return v, Permanent(&decodeError{target: fmt.Sprintf("%T", v), err: err})
	}
	return v, nil
}

// decodeError is an error of encoding/json without the values of the body.
type decodeError struct {
	target string
	err    error
}

func (e *decodeError) Error() string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(e.err, &syntax):
		return fmt.Sprintf("the body is no JSON: fault at byte %d", syntax.Offset)
	case errors.As(e.err, &kind):
		return fmt.Sprintf("the body does not fit %s: the value at byte %d, field %q, is no %s", e.target, kind.Offset, kind.Field, kind.Type)
	}
	return fmt.Sprintf("the body does not fit %s: %T", e.target, e.err)
}

func (e *decodeError) Unwrap() error { return e.err }
