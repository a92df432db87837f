package selectors

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/spelling"
	"github.com/semel-go/semel/internal/strictjson"
)

// Selector says where in a message a value is: in a header, in the body, in an attribute and so on. See Parse.
type Selector struct {
	text     string
	place    Place
	argument string
	pointer  strictjson.Pointer
	optional bool
}

// Place is the part of a selector before the colon.
type Place uint8

// The kinds of selectors.

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

// selectorForms lists, for the texts of errors, the kinds of selectors that Parse accepts.
const selectorForms = "header:NAME, body:/json/pointer, body:, key, topic, type, subject, time, id, source, const:TEXT, partition, offset"

// selectorNames contains the name of each Place. If several names are similar to a wrong name, Parse suggests the first
// similar name.
var selectorNames = [...]struct {
	name  string
	place Place
}{
	{"header", PlaceHeader}, {"body", PlaceBody}, {"key", PlaceKey}, {"topic", PlaceTopic},
	{"type", PlaceType}, {"subject", PlaceSubject}, {"time", PlaceTime}, {"id", PlaceID},
	{"source", PlaceSource}, {"const", PlaceConst}, {"partition", PlacePartition}, {"offset", PlaceOffset},
}

// Error is the error of a selector that has no clear value in a message. An Error does not affect other selectors and
// messages.
type Error struct {
	Selector string
	// Reason is semel.ReasonMalformed: the body is not strict JSON, or a header occurs several times with
	// different values.
	Reason semel.Reason
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Reason, e.Selector, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Parse parses the text of a selector. The kinds of selectors are:
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
// A question mark at the end makes a value optional: "body:/note?". (If the name itself ends in a question mark, only a
// function in Go can select the value.) The error of Parse lists the kinds of selectors and suggests a similar name.
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

// probablyMeant returns a hint with the name that is most similar to word. If no name is similar, the hint is
// empty.
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

// withArgument checks the part after the colon.
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

// String returns the text of the selector that was passed to Parse.
func (s Selector) String() string { return s.text }

// Canonical returns the selector's text with header names in lower case, so that equal
// selectors have equal texts.
func (s *Selector) Canonical() string {
	if s.place == PlaceHeader {
		return strings.ToLower(s.text)
	}
	return s.text
}

// Place returns the part before the colon, or 0 for the zero Selector.
func (s *Selector) Place() Place { return s.place }

// Argument returns the part after the colon.
func (s *Selector) Argument() string { return s.argument }

// Optional reports whether the selector ends in a question mark.
func (s Selector) Optional() bool { return s.optional }

// Coordinate reports whether the value is a partition or an offset, which the broker assigns
// and which may change on redelivery.
func (s Selector) Coordinate() bool { return s.place == PlacePartition || s.place == PlaceOffset }

// Time reports whether the selector selects the event time of the message.
func (s Selector) Time() bool { return s.place == PlaceTime }

// Unique reports whether the value differs in every message: a coordinate, a time, or the attribute id.
func (s Selector) Unique() bool { return s.Coordinate() || s.Time() || s.place == PlaceID }

// InBody reports whether the value is in the body.
func (s Selector) InBody() bool { return s.place == PlaceBody || s.place == PlaceWholeBody }

// Constant reports whether the value is the same in every message.
func (s Selector) Constant() bool { return s.place == PlaceConst }

// ReservedSource is the prefix of sources that the engine creates. Producers must not use this prefix.
const ReservedSource = "semel:"
