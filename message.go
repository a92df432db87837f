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

// Message is what a producer said, as one delivery brought it. A handler must
// not change it: a later attempt sees the same value.
type Message struct {
	// Topic is the topic, queue or file the delivery came from.
	Topic string
	// Key is the producer's routing key; nil when it gave none.
	Key []byte
	// Headers are the producer's headers in their order; names may repeat.
	Headers Headers
	// Body is the payload, byte for byte.
	Body []byte
	// Attributes are what the producer declared outside of headers, for
	// transports that have a place of their own for it.
	Attributes Attributes
	// Origin says where the delivery lay in the broker. It is for people and
	// for parameters and is refused as identity: redelivery may change it.
	Origin Origin
	// Identity is set by the engine before a handler sees the message.
	Identity Key
	// Attempt is 1 for the first run of the handler that can be charged to
	// this message, as far as this process knows. Set by the engine; whoever
	// calls consumer.Consumer's Process sets it to the broker's count of deliveries, this one
	// included, or leaves it 0 where the broker does not count. Where the broker
	// counts what was no attempt, see consumer.Disposition.
	Attempt int
	// Replayed is set by the engine: the replay that the message is part of, nil if it is
	// part of none. Handlers ask Replay, and change nothing of it: its messages share it.
	Replayed *Replay `json:"-"`
	// Strict is of no use but to Semel, which sets it when it has read Body as
	// strict JSON, so that values are found in it without reading it all again. It
	// holds for that very memory: a copy of the message with another Body is read
	// as if it were not set.
	Strict strictjson.Proof `json:"-"`
}

// NewMessage returns a message as a handler sees it at its first attempt: with
// its identity, a body and headers. It is for tests of a handler, where no engine
// sets the identity and IdempotencyKey and OutputID would panic without one. The
// attributes id and source are those of the identity, and it has no place in a
// broker. It panics if of has no ID.
func NewMessage(of Key, body []byte, headers ...Header) *Message {
	m := &Message{
		Headers: headers, Body: body, Attributes: Attributes{ID: of.ID, Source: of.Source},
		Origin: Origin{Partition: -1, Offset: -1}, Identity: of, Attempt: 1,
	}
	m.mustIdentity()
	return m
}

// Attributes are the CloudEvents attributes a producer may set.
type Attributes struct {
	ID, Source, Type, Subject, DataSchema string
	Time                                  time.Time
}

// Origin is where a delivery lay in the broker.
type Origin struct {
	// Partition is -1 where the broker has none.
	Partition int32
	// Written is when the record was written, as the broker has it, in seconds since
	// 1970; 0 where it has no time. See Time.
	Written uint32
	// Offset is the broker's number of the delivery in its lane; for a file
	// the byte at which the line begins; -1 where there is none.
	Offset int64
	// BrokerID is the broker's own id of the message, empty where it has none.
	BrokerID string
}

// Time is when the record was written, as the broker has it, to the second; the zero time
// where it has no time.
func (o Origin) Time() time.Time {
	if o.Written == 0 {
		return time.Time{}
	}
	return time.Unix(int64(o.Written), 0)
}

// SetTime sets Written. The zero time is none; times that it cannot hold become the
// nearest that it can, 1970 and 2106.
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

// Get returns the value of the first header of this name, compared without
// regard to case, and whether there is one.
func (h Headers) Get(name string) ([]byte, bool) {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return h[i].Value, true
		}
	}
	return nil, false
}

// Key is the identity of a message for one consumer. Two messages with equal
// keys are copies of one another; nothing else makes them so.
type Key struct {
	// Consumer is the name of the consumer; two consumers never hide each
	// other's messages.
	Consumer string
	// Source is the producer's name for itself; it may be empty.
	Source string
	// ID is any bytes, 1 to MaxID of them.
	ID string
}

// MaxID is the longest identity in bytes. A longer one is no usable identity.
const MaxID = 4096

// ID is the producer's id: the attribute, or the header ce-id; empty if neither.
func (m *Message) ID() string { return m.attribute(m.Attributes.ID, "ce-id") }

// Source is the producer's name: the attribute, or the header ce-source.
func (m *Message) Source() string { return m.attribute(m.Attributes.Source, "ce-source") }

// Type is the kind of event: what consumer.Config.Type finds, or else the attribute, or the
// header ce-type.
func (m *Message) Type() string {
	kind := m.attribute(m.Attributes.Type, "ce-type")
	if kind == "" {
		m.Strict.AskForType()
	}
	return kind
}

// Subject is what the event is about: the attribute, or the header ce-subject.
func (m *Message) Subject() string { return m.attribute(m.Attributes.Subject, "ce-subject") }

// DataSchema is the schema of the body: the attribute, or the header ce-dataschema.
func (m *Message) DataSchema() string { return m.attribute(m.Attributes.DataSchema, "ce-dataschema") }

// Time is when the event happened as the producer says: the attribute, or the
// header ce-time in RFC 3339; the zero time if there is none or it is malformed.
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

// JSON decodes the body of m into a T, as encoding/json does. Its error is permanent: waiting does
// not mend a body. The error's text tells the place and not the value, which
// would go into logs; errors.As finds the error of encoding/json.
func JSON[T any](m *Message) (T, error) {
	var v T
	if err := json.Unmarshal(m.Body, &v); err != nil {
		return v, Permanent(&decodeError{target: fmt.Sprintf("%T", v), err: err})
	}
	return v, nil
}

// decodeError hides the values of a body that encoding/json names.
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
