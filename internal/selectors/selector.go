package selectors

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/spelling"
	"github.com/semel-go/semel/internal/strictjson"
)

// Selector says where a value is found in a message. See Parse.
type Selector struct {
	text     string
	place    Place
	argument string
	pointer  strictjson.Pointer
	optional bool
}

// Place is the part of a selector before the colon.
type Place uint8

// The places.

const (
	PlaceHeader Place = iota + 1
	PlaceBody
	PlaceWholeBody
	PlaceKey
	PlaceTopic
	PlaceType
	PlaceSubject
	PlaceTime
	PlaceID
	PlaceSource
	PlaceConst
	PlacePartition
	PlaceOffset
)

// selectorForms are what Parse accepts, for its errors.
const selectorForms = "header:NAME, body:/json/pointer, body:, key, topic, type, subject, time, id, source, const:TEXT, partition, offset"

// selectorNames are in the order in which a near miss is looked for.
var selectorNames = [...]struct {
	name  string
	place Place
}{
	{"header", PlaceHeader}, {"body", PlaceBody}, {"key", PlaceKey}, {"topic", PlaceTopic},
	{"type", PlaceType}, {"subject", PlaceSubject}, {"time", PlaceTime}, {"id", PlaceID},
	{"source", PlaceSource}, {"const", PlaceConst}, {"partition", PlacePartition}, {"offset", PlaceOffset},
}

// Error says why a selector found no unambiguous value. Other selectors
// and other messages are not affected.
type Error struct {
	Selector string
	// Reason is semel.ReasonMalformed: the body is no strict JSON, or a header
	// stands twice with different values.
	Reason semel.Reason
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Reason, e.Selector, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Parse reads a selector. The forms are:
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
func Parse(s string) (Selector, error) {
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
	case PlaceHeader:
		if s.argument == "" {
			return Selector{}, fmt.Errorf("selector %q names no header; write header:NAME", s.text)
		}
	case PlaceConst:
		if !has {
			return Selector{}, fmt.Errorf("selector %q has no text; write const:TEXT", s.text)
		}
	case PlaceBody:
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
		s.place = PlaceWholeBody
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

// Canonical is the selector's text in one spelling: names of headers in small letters.
func (s *Selector) Canonical() string {
	if s.place == PlaceHeader {
		return strings.ToLower(s.text)
	}
	return s.text
}

// Place is the part before the colon; 0 for the zero Selector.
func (s *Selector) Place() Place { return s.place }

// Argument is the part behind the colon.
func (s *Selector) Argument() string { return s.argument }

// Optional reports whether the selector ends in a question mark.
func (s Selector) Optional() bool { return s.optional }

// Coordinate reports whether the value is the broker's and may change with a
// redelivery: partition and offset.
func (s Selector) Coordinate() bool { return s.place == PlacePartition || s.place == PlaceOffset }

// Time reports whether the selector is the time of the message's event.
func (s Selector) Time() bool { return s.place == PlaceTime }

// Unique reports whether each message has a value of its own: a coordinate, a time, or the
// attribute id.
func (s Selector) Unique() bool { return s.Coordinate() || s.Time() || s.place == PlaceID }

// InBody reports whether the value stands in the body.
func (s Selector) InBody() bool { return s.place == PlaceBody || s.place == PlaceWholeBody }

// Constant reports whether the value is the same in every message.
func (s Selector) Constant() bool { return s.place == PlaceConst }

// ReservedSource begins the sources that the engine makes itself. No producer may have one.
const ReservedSource = "semel:"
