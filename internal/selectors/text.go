package selectors

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/strictjson"
)

// TextIn returns the value as text. The room contains the parsed body; the parameter room may be nil. A number is
// returned as its exact decimal, and a missing or null value as "". If the value is an object or an array, or if Value
// would return an error, TextIn returns an error. The error is a *Error.
func (s Selector) TextIn(room *reading.Room, m *semel.Message) (string, error) {
	if text := s.Verbatim(m); text != "" {
		return text, nil
	}
	v, err := s.In(&Body{Message: m, Room: room})
	switch {
	case err != nil:
		return "", err
	case v.kind == JSON:
		return "", &Error{s.text, semel.ReasonMalformed, errors.New("the value is an object or an array; point to a value inside it")}
	case v.kind == Number:
		return string(strictjson.AppendDecimal(nil, v.text)), nil
	case room == nil:
		return v.Text(), nil
	}
	return room.Text(v.Bytes()), nil
}
