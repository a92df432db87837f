package selectors

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
	"github.com/semel-go/semel/internal/strictjson"
)

// Value returns the selector's value in m. A missing value is not an error; use Value.IsMissing and
// Selector.Optional. An error is a *Error.
func (s Selector) Value(m *semel.Message) (Value, error) {
	values, err := Select(m, []Selector{s})
	if err != nil {
		return Value{}, err
	}
	return values[0], nil
}

// Select returns the values of several selectors and parses the body at most once. If a selector fails,
// Select returns the error of the first selector that fails, a *Error.
func Select(m *semel.Message, selectors []Selector) ([]Value, error) {
	values, err := Append(nil, m, selectors)
	if err != nil {
		return nil, err
	}
	return values, nil
}

// Append appends the values that Select would return to values. If a selector fails, Append returns the slice values
// unchanged.
func Append(values []Value, m *semel.Message, selectors []Selector) ([]Value, error) {
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
	b := Body{Message: m}
	for i := range selectors {
		if proven && selectors[i].place == PlaceBody {
			continue
		}
		var err error
		if found[i], err = selectors[i].In(&b); err != nil {
			return values[:given], err
		}
	}
	return values, nil
}

// sought contains the pointers to look for in a body, and the found values.
type sought struct {
	pointers []strictjson.Pointer
	found    []strictjson.Found
}

var searches = sync.Pool{New: func() any { return new(sought) }}

// skipTo sets the values of the selectors that point into the body. skipTo makes one pass over the body without parsing
// it. The body must be known to be strict JSON.
func skipTo(body []byte, selectors []Selector, values []Value) {
	s := searches.Get().(*sought)
	s.pointers = s.pointers[:0]
	for i := range selectors {
		if selectors[i].place == PlaceBody {
			s.pointers = append(s.pointers, selectors[i].pointer)
		}
	}
	s.found = slices.Grow(s.found[:0], len(s.pointers))[:len(s.pointers)]
	_ = strictjson.Find(body, s.pointers, s.found, nil) // the found values refer to the decoded strings
	next := 0
	for i := range selectors {
		if selectors[i].place == PlaceBody {
			values[i] = Value{kinds[s.found[next].Kind], s.found[next].Text}
			next++
		}
	}
	clear(s.found)
	searches.Put(s)
}

// Body parses a message's body on first use.
type Body struct {
	Message *semel.Message
	// Room is the memory in which the body is parsed. If Room is nil, new memory is used. When the Room is used again,
	// the found values become invalid.
	Room *reading.Room
}

func (b *Body) value() (strictjson.Value, error) {
	if b.Room == nil {
		b.Room = new(reading.Room)
	}
	return b.Room.Body(b.Message.Body)
}

// In returns the selector's value in the message of b, whose body is parsed at most once.
func (s *Selector) In(b *Body) (Value, error) {
	m := b.Message
	switch s.place {
	case PlaceHeader:
		return s.header(m, s.argument)
	case PlaceBody:
		return s.body(b)
	case PlaceWholeBody:
		return bytesValue(m.Body), nil
	case PlaceKey:
		return bytesValue(m.Key), nil
	case PlaceTopic:
		return stringValue(s.Verbatim(m)), nil
	case PlaceTime:
		return timeValue(m.Time()), nil
	case PlaceConst:
		return Value{String, []byte(s.argument)}, nil
	case PlacePartition:
		return coordinateValue(int64(m.Origin.Partition)), nil
	case PlaceOffset:
		return coordinateValue(m.Origin.Offset), nil
	}
	return s.attribute(m)
}

// Verbatim returns the value if the message or the selector contains the value as a string. For all other values,
// Verbatim returns "".
func (s *Selector) Verbatim(m *semel.Message) string {
	switch s.place {
	case PlaceTopic:
		return m.Topic
	case PlaceConst:
		return s.argument
	case PlaceID:
		return m.Attributes.ID
	case PlaceSource:
		return m.Attributes.Source
	case PlaceType:
		return m.Attributes.Type
	case PlaceSubject:
		return m.Attributes.Subject
	}
	return ""
}

// attributeHeaders contains the headers of CloudEvents attributes. A header is used if the message's field is
// empty.
var attributeHeaders = [PlaceOffset + 1]string{PlaceID: "ce-id", PlaceSource: "ce-source", PlaceType: "ce-type", PlaceSubject: "ce-subject"}

// AttributeHeader returns the header of the CloudEvents attribute that the selector names. If the selector
// names no attribute, the result is empty.
func (s *Selector) AttributeHeader() string { return attributeHeaders[s.place] }

// attribute returns a CloudEvents attribute from the message's field or, if the field is empty, from its
// header.
func (s *Selector) attribute(m *semel.Message) (Value, error) {
	header := attributeHeaders[s.place]
	if header == "" {
		return Value{}, &Error{s.text, semel.ReasonMalformed, errors.New("the zero Selector selects nothing; use Parse")}
	}
	if field := s.Verbatim(m); field != "" {
		return stringValue(field), nil
	}
	v, err := s.header(m, header)
	if err == nil && len(v.text) > 0 {
		return Value{String, v.text}, nil
	}
	return Value{}, err
}

// header returns the value of a header. If a header has several different values, header returns an error,
// because some readers would use the first value and others the last.
func (s *Selector) header(m *semel.Message, name string) (Value, error) {
	value, found := []byte(nil), false
	for i := range m.Headers {
		h := &m.Headers[i]
		if len(h.Name) != len(name) || !strings.EqualFold(h.Name, name) {
			continue
		}
		if found && !bytes.Equal(value, h.Value) {
			return Value{}, &Error{s.text, semel.ReasonMalformed, fmt.Errorf("header %s occurs twice with different values", legible.Printable(name))}
		}
		value, found = h.Value, true
	}
	if !found {
		return Value{}, nil
	}
	return Value{Bytes, value[:len(value):len(value)]}, nil
}

// body returns a value from a JSON body.
func (s *Selector) body(b *Body) (Value, error) {
	v, found, err := s.inBody(b)
	if !found {
		return Value{}, err
	}
	return jsonValue(v), nil
}

// inBody returns the value from the parsed body. If the message has no body, the result found is false.
func (s *Selector) inBody(b *Body) (v strictjson.Value, found bool, err error) {
	if len(b.Message.Body) == 0 {
		return strictjson.Value{}, false, nil
	}
	root, err := b.value()
	if err != nil {
		return strictjson.Value{}, false, &Error{s.text, semel.ReasonMalformed, fmt.Errorf("the body is not strict JSON: %w", err)}
	}
	v, found = root.Lookup(s.pointer)
	return v, found, nil
}

func timeValue(t time.Time) Value {
	if t.IsZero() {
		return Value{}
	}
	return Value{String, []byte(t.Format(time.RFC3339Nano))}
}

// coordinateValue returns a partition or an offset as a value. A negative coordinate counts as missing.
func coordinateValue(n int64) Value {
	if n < 0 {
		return Value{}
	}
	return Value{Number, strconv.AppendInt(nil, n, 10)}
}
