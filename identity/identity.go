package identity

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/internal/strictjson"
	"github.com/semel-go/semel/internal/structured"
)

// Identity finds the identity of a message. See CloudEvents and By.
//
// An Identity may also have a method Derivation() string that describes how identities are found. The text of
// Derivation must not be empty. If the rule changes so that a message gets another identity, the text must change too;
// if not, the text must stay the same. A store that supports derivations records the text of a consumer, and the
// consumer does not start with another text. Without the method Derivation no text is stored or checked.
type Identity interface {
	// Identify returns the producer's name, which may be empty, and the message's id, which has 1 to
	// semel.MaxID bytes. An error is an *Error.
	Identify(m *semel.Message) (source, id string, err error)
	// Validate returns an error if the identity must not be used, for example because of a coordinate of the broker or
	// an unknown selector. If the identity may be used, Validate returns nil.
	Validate() error
}

// Error is the error of a message that has no usable identity.
type Error struct {
	// Reason is one of: semel.ReasonNoIdentity, semel.ReasonBadIdentity, the reason "identity too long", and
	// semel.ReasonMalformed if the identity is in a body that is not strict JSON.
	Reason semel.Reason
	Detail string
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Detail }

// Fingerprinter computes fingerprints. See FingerprintBody.
type Fingerprinter interface {
	// Fingerprint returns the fingerprint of the content of m. An error means that the content cannot be read.
	Fingerprint(m *semel.Message) (semel.Fingerprint, error)
	// Validate returns an error if the fingerprinter must not be used, and nil if it may be used.
	Validate() error
}

// CloudEvents uses the CloudEvents attributes source (ce-source) and id (ce-id). As in the CloudEvents specification,
// source, id, type and specversion are required, and specversion must be 1.0. A time must be in the format of RFC 3339.
// An event in headers (binary mode) that violates the specification is malformed. Every identity with the selector id,
// and every message with a specversion, is checked in the same way.
func CloudEvents() Identity { return By("id").From("source") }

// Selected is an identity made of selectors. See By.
type Selected struct {
	ids    []selectors.Selector
	source selectors.Selector
	// hasSource reports whether From was called.
	hasSource bool
	// faults contains the errors of selectors that could not be parsed.
	faults []error
	// trusted reports whether Trusted was called.
	trusted bool
}

// By returns an identity whose id is found by selectors. With one selector, the id is the value of the
// selector, byte for byte. Several selectors form a composite business key: each part is written with its
// length ("1:a,2:bc,"), so that the parts "a", "bc" and the parts "ab", "c" give different ids.
//
// The kinds of selectors are:
//
//	header:NAME      the value of a header; the case of the name does not matter
//	body:/a/0/b      a value in a JSON body, by a JSON pointer (RFC 6901)
//	body:            the whole body, which need not be JSON
//	key              the routing key
//	id, source, type, subject, time
//	                 the CloudEvents attribute that the producer set
//	topic            the topic, queue or file of the delivery
//	const:TEXT       this text; a question mark at its end is part of the text
//	partition, offset
//	                 coordinates of the broker; rejected in identities
//
// A question mark at the end makes a value optional: "body:/note?". (If the name itself ends in a question
// mark, only a function in Go can select the value.)
//
// A JSON number is converted to an exact decimal, so that 1.0, 1 and the string "1" are the same id. An id is
// not usable if it is missing, null, empty, an object or an array, or only true or false. Validate reports
// unknown selectors and selectors that are not allowed in identities; see also Trusted.
func By(ids ...string) *Selected {
	s := &Selected{}
	for _, text := range ids {
		s.ids = append(s.ids, s.parse(text))
	}
	if len(ids) == 0 {
		s.faults = append(s.faults, errors.New("an identity needs at least one selector, such as header:ce-id"))
	}
	return s
}

// From sets the selector of the producer's name, so that messages of two producers with the same id have different
// identities. Without From the source of the identity is empty. If the value of the selector is missing or empty, the
// message has no usable identity, unless the selector is optional ("header:ce-source?"). From changes s and returns s.
func (s *Selected) From(source string) *Selected {
	s.source = s.parse(source)
	s.hasSource = true
	return s
}

func (s *Selected) parse(text string) selectors.Selector {
	selector, err := selectors.Parse(text)
	if err != nil {
		s.faults = append(s.faults, err)
	}
	return selector
}

// Validate returns all faults of the selectors.
func (s *Selected) Validate() error {
	faults := append([]error(nil), s.faults...)
	constant, shared := true, true
	for _, id := range s.ids {
		constant = constant && id.Constant()
		shared = shared && (id.Constant() || sharedByMany(id))
		faults = append(faults, checkSelector(id))
		if id.Optional() {
			faults = append(faults, fmt.Errorf("%q cannot be an identity: all messages without the value would have the same identity; leave the question mark out", id))
		}
	}
	if constant && len(s.ids) > 0 {
		faults = append(faults, fmt.Errorf("an identity of constants is the same for all messages; add a selector that differs for each message, such as header:ce-id"))
	}
	if shared && !constant {
		faults = append(faults, fmt.Errorf("%q alone cannot be an identity: many messages share it, and all but one would be duplicates; %s", s.ids[0], useInstead))
	}
	if s.hasSource {
		faults = append(faults, checkSelector(s.source))
	}
	if unfit, why := s.Unfit(); why != "" {
		faults = append(faults, fmt.Errorf("%q cannot be an identity: %s; name what the producer sets once for the message, or call Trusted on the identity if this producer does", unfit, why))
	}
	if s.source.Constant() && strings.HasPrefix(s.source.Argument(), selectors.ReservedSource) {
		faults = append(faults, fmt.Errorf("%q: sources that begin with %s are reserved", s.source, selectors.ReservedSource))
	}
	return errors.Join(faults...)
}

// Identify returns the source and the id of m.
func (s *Selected) Identify(m *semel.Message) (source, id string, err error) {
	room := reading.Borrow()
	defer room.Return()
	return s.identify(room, m)
}

func (s *Selected) identify(room *reading.Room, m *semel.Message) (source, id string, err error) {
	if len(s.faults) > 0 {
		return "", "", &Error{semel.ReasonBadIdentity, "the identity's selectors are faulty: " + s.faults[0].Error()}
	}
	body := selectors.Body{Message: m, Room: room}
	if s.hasSource {
		text, err := appendPart(room.Buffer(), &s.source, &body)
		if err != nil {
			return "", "", err
		}
		source = room.Repeated(text)
		room.Keep(text)
	}
	if id, err = s.id(&body); err != nil {
		return "", "", err
	}
	if s.ofEvents() && m.Attributes.ID == "" {
		if fault := structured.EventDetail(m, true); fault != "" {
			return "", "", &Error{semel.ReasonMalformed, fault}
		}
	}
	return source, id, checkIdentity(source, id)
}

// ofEvents reports whether the identity uses the CloudEvents attribute id.
func (s *Selected) ofEvents() bool {
	return slices.ContainsFunc(s.ids, func(id selectors.Selector) bool { return id.Place() == selectors.PlaceID })
}

func (s *Selected) id(body *selectors.Body) (string, error) {
	key, err := s.appendID(body.Room.Buffer(), body)
	if err != nil {
		return "", err
	}
	body.Room.Keep(key)
	return body.Room.Text(key), nil
}

func (s *Selected) appendID(key []byte, body *selectors.Body) (_ []byte, err error) {
	if len(s.ids) == 1 {
		if key, err = appendPart(key, &s.ids[0], body); err != nil {
			return nil, err
		}
		if s.ids[0].Place() == selectors.PlaceBody && (string(key) == "true" || string(key) == "false") {
			return key, refuseLoneBool(&s.ids[0], body)
		}
		return key, nil
	}
	for i := range s.ids {
		first := len(key)
		if key, err = appendPart(key, &s.ids[i], body); err != nil {
			return nil, err
		}
		length := append(strconv.AppendInt(nil, int64(len(key)-first), 10), ':')
		key = append(slices.Insert(key, first, length...), ',')
	}
	return key, nil
}

// refuseLoneBool rejects an id that can only be true or false, because all messages except two would be
// duplicates.
func refuseLoneBool(s *selectors.Selector, body *selectors.Body) error {
	if v, _ := s.In(body); v.Kind() != selectors.Bool {
		return nil
	}
	return &Error{semel.ReasonBadIdentity, s.String() + " is true or false, which many messages share"}
}

// appendPart appends one part of an identity. If the part is missing or empty, appendPart returns an error.
func appendPart(key []byte, s *selectors.Selector, body *selectors.Body) ([]byte, error) {
	if text := s.Verbatim(body.Message); text != "" {
		return append(key, text...), nil
	}
	v, err := s.In(body)
	if err != nil {
		return nil, identityErrorOf(err)
	}
	switch v.Kind() {
	case selectors.Missing:
		if s.Optional() {
			return key, nil
		}
		return nil, &Error{semel.ReasonNoIdentity, s.String() + absenceText(s, body.Message)}
	case selectors.Null:
		return nil, &Error{semel.ReasonNoIdentity, s.String() + " is null"}
	case selectors.JSON:
		return nil, &Error{semel.ReasonBadIdentity, s.String() + " is an object or an array; point to a value inside it"}
	case selectors.Number:
		return strictjson.AppendDecimal(key, v.Bytes()), nil
	}
	if len(v.Bytes()) == 0 && !s.Optional() {
		return nil, &Error{semel.ReasonNoIdentity, s.String() + " is empty"}
	}
	return append(key, v.Bytes()...), nil
}

// absenceText returns the text for an error: "is missing" or "is empty" for an attribute.
func absenceText(s *selectors.Selector, m *semel.Message) string {
	header := s.AttributeHeader()
	if _, there := m.Headers.Get(header); there && header != "" {
		return " is empty"
	}
	return " is missing"
}

// Func returns an identity that calls the function find. If find panics, or returns an error that is no *Error, the
// message has no usable identity, with the reason semel.ReasonBadIdentity. The result of find must follow the rules of
// Identity: an id of 1 to semel.MaxID bytes, and a source that does not begin with "semel:".
func Func(find func(m *semel.Message) (source, id string, err error)) Identity {
	return identityFunc(find)
}

type identityFunc func(m *semel.Message) (source, id string, err error)

func (f identityFunc) Identify(m *semel.Message) (string, string, error) { return callGuarded(f, m) }

func (f identityFunc) Validate() error {
	if f == nil {
		return errors.New("the identity's function is nil")
	}
	return nil
}

// FindIn does the same as Identify, and reuses the memory of room. FindIn checks the result by the rules of Func.
func (s *Selected) FindIn(room *reading.Room, m *semel.Message) (source, id string, err error) {
	defer notPanicking(&source, &id, &err)
	source, id, err = s.identify(room, m)
	return checkResult(source, id, err)
}

// callGuarded calls the function find and checks the result by the rules of identities. If find panics, callGuarded
// returns an error, so that other messages are not affected.
func callGuarded(find func(m *semel.Message) (source, id string, err error), m *semel.Message) (source, id string, err error) {
	defer notPanicking(&source, &id, &err)
	source, id, err = find(m)
	return checkResult(source, id, err)
}

// notPanicking, when deferred, turns a panic into an error.
func notPanicking(source, id *string, err *error) {
	if p := recover(); p != nil {
		*source, *id, *err = "", "", &Error{semel.ReasonBadIdentity, "the identity panicked: " + legible.Panic(p)}
	}
}

// checkResult returns source and id if they follow the rules of Func, and an *Error if they do not.
func checkResult(source, id string, err error) (string, string, error) {
	if err == nil {
		err = checkIdentity(source, id)
	}
	if err != nil {
		return "", "", identityErrorOf(err)
	}
	return source, id, nil
}

// identityErrorOf converts an error to an *Error.
func identityErrorOf(err error) error {
	if own := (*Error)(nil); errors.As(err, &own) {
		return own
	}
	if selected := (*selectors.Error)(nil); errors.As(err, &selected) {
		return &Error{selected.Reason, selected.Selector + ": " + selected.Err.Error()}
	}
	return &Error{semel.ReasonBadIdentity, err.Error()}
}

// checkIdentity returns an error if source or id violates the rules of Func.
func checkIdentity(source, id string) error {
	switch {
	case id == "":
		return &Error{semel.ReasonNoIdentity, "the id is empty"}
	case len(id) > semel.MaxID:
		return &Error{reasonname.IdentityTooLong, fmt.Sprintf("the id has %d bytes, more than %d", len(id), semel.MaxID)}
	case len(source) > semel.MaxID:
		return &Error{reasonname.IdentityTooLong, fmt.Sprintf("the source has %d bytes, more than %d", len(source), semel.MaxID)}
	case strings.HasPrefix(source, selectors.ReservedSource):
		return &Error{semel.ReasonBadIdentity, "sources that begin with " + selectors.ReservedSource + " are reserved"}
	}
	return nil
}
