package selectors

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/strictjson"
)

// TextIn is what the selector finds in m as text, where the body has been read in room (nil
// for none): a number as its exact decimal, and "" for what is missing or null. An object or
// an array is an error, as is what Value cannot read; it is a *Error.
func (s Selector) TextIn(room *reading.Room, m *semel.Message) (string, error) {
	if text := s.Verbatim(m); text != "" {
		return text, nil
	}
	v, err := s.In(&Body{Message: m, Room: room})
	switch {
	case err != nil:
		return "", err
	case v.kind == JSON:
		return "", &Error{s.text, semel.ReasonMalformed, errors.New("there is an object or an array; point to a value inside it")}
	case v.kind == Number:
		return string(strictjson.AppendDecimal(nil, v.text)), nil
	case room == nil:
		return v.Text(), nil
	}
	return room.Text(v.Bytes()), nil
}
