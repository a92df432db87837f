package identity

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/spelling"
	"github.com/semel-go/semel/internal/strictjson"
)

// Selector says where a value is found in a message. See ParseSelector.
type Selector struct {
	text     string
	place    place
	argument string
	pointer  strictjson.Pointer
	optional bool
}

// place is the part of a selector before the colon.
type place uint8

const (
	placeHeader place = iota + 1
	placeBody
	placeWholeBody
	placeKey
	placeTopic
	placeType
	placeSubject
	placeTime
	placeID
	placeSource
	placeConst
	placePartition
	placeOffset
)

// selectorForms are what ParseSelector accepts, for its errors.
const selectorForms = "header:NAME, body:/json/pointer, body:, key, topic, type, subject, time, id, source, const:TEXT, partition, offset"

// selectorNames are in the order in which a near miss is looked for.
var selectorNames = [...]struct {
	name  string
	place place
}{
	{"header", placeHeader}, {"body", placeBody}, {"key", placeKey}, {"topic", placeTopic},
	{"type", placeType}, {"subject", placeSubject}, {"time", placeTime}, {"id", placeID},
	{"source", placeSource}, {"const", placeConst}, {"partition", placePartition}, {"offset", placeOffset},
}

// SelectError says why a selector found no unambiguous value. Other selectors
// and other messages are not affected.
type SelectError struct {
	Selector string
	// Reason is semel.ReasonMalformed: the body is no strict JSON, or a header
	// stands twice with different values.
	Reason semel.Reason
	Err    error
}

func (e *SelectError) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Reason, e.Selector, e.Err)
}

func (e *SelectError) Unwrap() error { return e.Err }

// ParseSelector reads a selector. The forms are:
//
//	header:NAME      the value of a header, whatever the case of its name
//	body:/a/0/b      a value of a JSON body, by a JSON pointer (RFC 6901)
//	body:            the whole body, which need not be JSON
//	key              the routing key
//	id, source, type, subject, time
//	                 what the producer set: the CloudEvents attribute
//	topic            where the delivery came from
//	const:TEXT       this text, which may end in a question mark
//	partition, offset
//	                 coordinates of the broker; refused as identity
//
// A question mark at the end makes a value optional: "body:/note?". (A name
// that itself ends in one can only be selected by a function in Go.) The error
// lists the forms and names the one that was probably meant.
func ParseSelector(s string) (Selector, error) {
	name, argument, hasArgument := strings.Cut(s, ":")
	optional := false
	if name != "const" {
		if optional = strings.HasSuffix(s, "?"); optional {
			name, argument, _ = strings.Cut(strings.TrimSuffix(s, "?"), ":")
		}
	}
	for _, known := range selectorNames {
		if known.name == name {
			out := Selector{text: s, place: known.place, argument: argument, optional: optional}
			return out.withArgument(hasArgument)
		}
	}
	return Selector{}, fmt.Errorf("unknown selector %q; %suse one of %s", s, probablyMeant(name), selectorForms)
}

// probablyMeant names the selector that is spelled most like the word.
func probablyMeant(word string) string {
	names := make([]string, len(selectorNames))
	for i := range selectorNames {
		names[i] = selectorNames[i].name
	}
	if best := spelling.Nearest(strings.ToLower(word), names, 3); best != "" {
		return fmt.Sprintf("did you mean %q? ", best)
	}
	return ""
}

// withArgument checks what stands after the colon.
func (s Selector) withArgument(has bool) (Selector, error) {
	switch s.place {
	case placeHeader:
		if s.argument == "" {
			return Selector{}, fmt.Errorf("selector %q names no header; write header:NAME", s.text)
		}
	case placeConst:
		if !has {
			return Selector{}, fmt.Errorf("selector %q has no text; write const:TEXT", s.text)
		}
	case placeBody:
		return s.withPointer(has)
	default:
		if has {
			return Selector{}, fmt.Errorf("selector %q takes nothing after a colon; write %s", s.text, strings.SplitN(s.text, ":", 2)[0])
		}
	}
	return s, nil
}

func (s Selector) withPointer(has bool) (Selector, error) {
	if !has {
		return Selector{}, fmt.Errorf("selector %q does not say where in the body; write body:/json/pointer, or body: for the whole body", s.text)
	}
	if s.argument == "" {
		s.place = placeWholeBody
		return s, nil
	}
	pointer, err := strictjson.ParsePointer(s.argument)
	if err != nil {
		return Selector{}, fmt.Errorf("selector %q: %w", s.text, err)
	}
	s.pointer = pointer
	return s, nil
}

// String is the selector as it was written.
func (s Selector) String() string { return s.text }

// Optional reports whether the selector ends in a question mark.
func (s Selector) Optional() bool { return s.optional }

// Coordinate reports whether the value is the broker's and may change with a
// redelivery: partition and offset.
func (s Selector) Coordinate() bool { return s.place == placePartition || s.place == placeOffset }

// Time reports whether the selector is the time of the message's event.
func (s Selector) Time() bool { return s.place == placeTime }

// Unique reports whether each message has a value of its own: a coordinate, a time, or the
// attribute id.
func (s Selector) Unique() bool { return s.Coordinate() || s.Time() || s.place == placeID }

// InBody reports whether the value stands in the body.
func (s Selector) InBody() bool { return s.place == placeBody || s.place == placeWholeBody }

// Constant reports whether the value is the same in every message.
func (s Selector) Constant() bool { return s.place == placeConst }

// Value finds the selector's value in m. A missing value is no error: ask
// Value.IsMissing and Selector.Optional. The error is a *SelectError.
func (s Selector) Value(m *semel.Message) (Value, error) {
	values, err := Select(m, []Selector{s})
	if err != nil {
		return Value{}, err
	}
	return values[0], nil
}

// Select finds the values of several selectors and parses the body at most
// once. The error is the first selector's that failed, a *SelectError.
func Select(m *semel.Message, selectors []Selector) ([]Value, error) {
	values, err := AppendValues(nil, m, selectors)
	if err != nil {
		return nil, err
	}
	return values, nil
}

// AppendValues is Select for who has room for the values: it appends one of each
// selector to values. With an error it returns values as they were.
func AppendValues(values []Value, m *semel.Message, selectors []Selector) ([]Value, error) {
	given := len(values)
	if most := given + len(selectors); most <= cap(values) {
		values = values[:most]
	} else {
		values = append(make([]Value, 0, most), values...)[:most]
	}
	found := values[given:]
	proven := m.Strict.Holds(m.Body)
	if proven {
		skipTo(m.Body, selectors, found)
	}
	b := bodyOnce{message: m}
	for i := range selectors {
		if proven && selectors[i].place == placeBody {
			continue
		}
		var err error
		if found[i], err = selectors[i].in(&b); err != nil {
			return values[:given], err
		}
	}
	return values, nil
}

// sought is what is looked for in a body, and what was found there.
type sought struct {
	pointers []strictjson.Pointer
	found    []strictjson.Found
}

// searches holds *sought.
var searches = sync.Pool{New: func() any { return new(sought) }}

// skipTo finds the values of those selectors that point into a body that is
// proven to be strict JSON, in one pass and without parsing it.
func skipTo(body []byte, selectors []Selector, values []Value) {
	s := searches.Get().(*sought)
	s.pointers = s.pointers[:0]
	for i := range selectors {
		if selectors[i].place == placeBody {
			s.pointers = append(s.pointers, selectors[i].pointer)
		}
	}
	s.found = slices.Grow(s.found[:0], len(s.pointers))[:len(s.pointers)]
	_ = strictjson.Find(body, s.pointers, s.found, nil) // what it decoded is shared by what it found
	next := 0
	for i := range selectors {
		if selectors[i].place == placeBody {
			values[i] = Value{kinds[s.found[next].Kind], s.found[next].Text}
			next++
		}
	}
	clear(s.found)
	searches.Put(s)
}

// bodyOnce reads a message's body when it is first asked for.
type bodyOnce struct {
	message *semel.Message
	// room is where it is read. Nothing that was found may outlive a room that
	// is used again; without one there is a new one, for what is found alone.
	room *reading.Room
}

func (b *bodyOnce) value() (strictjson.Value, error) {
	if b.room == nil {
		b.room = new(reading.Room)
	}
	return b.room.Body(b.message.Body)
}

func (s *Selector) in(b *bodyOnce) (Value, error) {
	m := b.message
	switch s.place {
	case placeHeader:
		return s.header(m, s.argument)
	case placeBody:
		return s.body(b)
	case placeWholeBody:
		return bytesValue(m.Body), nil
	case placeKey:
		return bytesValue(m.Key), nil
	case placeTopic:
		return stringValue(s.standing(m)), nil
	case placeTime:
		return timeValue(m.Time()), nil
	case placeConst:
		return Value{ValueString, []byte(s.argument)}, nil
	case placePartition:
		return coordinateValue(int64(m.Origin.Partition)), nil
	case placeOffset:
		return coordinateValue(m.Origin.Offset), nil
	}
	return s.attribute(m)
}

// standing is the value where it is text that stands in the message, or in the
// selector, as a string; empty otherwise.
func (s *Selector) standing(m *semel.Message) string {
	switch s.place {
	case placeTopic:
		return m.Topic
	case placeConst:
		return s.argument
	case placeID:
		return m.Attributes.ID
	case placeSource:
		return m.Attributes.Source
	case placeType:
		return m.Attributes.Type
	case placeSubject:
		return m.Attributes.Subject
	}
	return ""
}

// attributeHeaders are where an event's attributes stand that no field holds.
var attributeHeaders = [placeOffset + 1]string{placeID: "ce-id", placeSource: "ce-source", placeType: "ce-type", placeSubject: "ce-subject"}

// attribute finds a CloudEvents attribute: the field, or its header.
func (s *Selector) attribute(m *semel.Message) (Value, error) {
	header := attributeHeaders[s.place]
	if header == "" {
		return Value{}, &SelectError{s.text, semel.ReasonMalformed, errors.New("the zero Selector selects nothing; use ParseSelector")}
	}
	if field := s.standing(m); field != "" {
		return stringValue(field), nil
	}
	v, err := s.header(m, header)
	if err == nil && len(v.text) > 0 {
		return Value{ValueString, v.text}, nil
	}
	return Value{}, err
}

// header finds a header's value. One that stands twice with different values
// has none: readers that take the first and the last would disagree.
func (s *Selector) header(m *semel.Message, name string) (Value, error) {
	value, found := []byte(nil), false
	for i := range m.Headers {
		h := &m.Headers[i]
		if len(h.Name) != len(name) || !strings.EqualFold(h.Name, name) {
			continue
		}
		if found && !bytes.Equal(value, h.Value) {
			return Value{}, &SelectError{s.text, semel.ReasonMalformed, fmt.Errorf("header %s stands twice with different values", legible.Printable(name))}
		}
		value, found = h.Value, true
	}
	if !found {
		return Value{}, nil
	}
	return Value{ValueBytes, value[:len(value):len(value)]}, nil
}

// body finds a value of a JSON body.
func (s *Selector) body(b *bodyOnce) (Value, error) {
	v, found, err := s.inBody(b)
	if !found {
		return Value{}, err
	}
	return jsonValue(v), nil
}

// inBody is body for who asks on. A message without a body has no value.
func (s *Selector) inBody(b *bodyOnce) (v strictjson.Value, found bool, err error) {
	if len(b.message.Body) == 0 {
		return strictjson.Value{}, false, nil
	}
	root, err := b.value()
	if err != nil {
		return strictjson.Value{}, false, &SelectError{s.text, semel.ReasonMalformed, fmt.Errorf("the body is no strict JSON: %w", err)}
	}
	v, found = root.Lookup(s.pointer)
	return v, found, nil
}

func timeValue(t time.Time) Value {
	if t.IsZero() {
		return Value{}
	}
	return Value{ValueString, []byte(t.Format(time.RFC3339Nano))}
}

// coordinateValue is a broker's number; where it has none it is missing.
func coordinateValue(n int64) Value {
	if n < 0 {
		return Value{}
	}
	return Value{ValueNumber, strconv.AppendInt(nil, n, 10)}
}
