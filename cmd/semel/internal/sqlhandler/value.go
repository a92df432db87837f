package sqlhandler

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/selectors"
)

func (h *Handler) values(m *semel.Message) ([]any, error) {
	var room [8]selectors.Value // eight values are enough for most statements, and stay on the stack
	found, err := selectors.Append(room[:0], m, h.selectors)
	if err != nil {
		return nil, unreadable(err)
	}
	values := make([]any, len(found), len(found)+1)
	for i, v := range found {
		if v.IsMissing() || v.IsNull() {
			if !h.selectors[i].Optional() {
				return nil, h.missing(i, v)
			}
			continue
		}
		if values[i], err = h.value(i, v); err != nil {
			return nil, &semel.HandlerError{Decision: semel.DecidePermanent, Reason: semel.ReasonMalformed,
				Err: fmt.Errorf("parameter %s: %s %w", h.names[i], h.selectors[i], err)}
		}
	}
	if h.generation != nil {
		values = append(values, h.generation)
	}
	return values, nil
}

func (h *Handler) value(i int, v selectors.Value) (any, error) {
	switch {
	case h.types[i] != "":
		return h.types[i].value(fromMessage(v), h.sendsText)
	case h.selectors[i].Constant(): // the policy itself contains the text
		return boundValue(v), nil
	}
	return h.untypedValue(v, h.textOnly != nil && h.textOnly[i])
}

func (h *Handler) missing(i int, v selectors.Value) error {
	how := "has no value"
	if v.IsNull() {
		how = "is null"
	}
	return &semel.HandlerError{Decision: semel.DecidePermanent, Reason: reasonname.MissingParameter,
		Err: fmt.Errorf("%s: %s %s", h.names[i], h.selectors[i], how)}
}

// unreadable returns the permanent error for a message in which a selector cannot find a value.
func unreadable(err error) error {
	reason := semel.ReasonMalformed
	var of *selectors.Error
	if errors.As(err, &of) {
		reason = of.Reason
	}
	return &semel.HandlerError{Decision: semel.DecidePermanent, Reason: reason, Err: err}
}

// boundValue returns the value to pass to the database driver. The same text in a message always gives the same
// type, so that a query can find a stored value.
func boundValue(v selectors.Value) any {
	switch v.Kind() {
	case selectors.Bool:
		return v.Bool()
	case selectors.Number:
		return number(v)
	case selectors.Bytes:
		if !utf8.Valid(v.Bytes()) {
			return v.Bytes()
		}
	}
	return v.Text()
}

// number returns an int64 for an integer that fits. Otherwise number returns a float64 if the float has
// exactly the same value, or else the decimal as text.
func number(v selectors.Value) any {
	return numberOf(v.Number(), v.Decimal())
}

// numberOf returns the same as number for the text of a JSON number and its decimal form.
func numberOf(text, decimal string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && sameDecimal(text, strconv.FormatFloat(f, 'e', -1, 64)) {
		return f
	}
	return decimal
}

// asText returns, as text, the value that boundValue returns. Decimals of any length stay exact.
func asText(v selectors.Value, given any) any {
	switch v.Kind() {
	case selectors.Bool:
		return strconv.FormatBool(v.Bool())
	case selectors.Number:
		return v.Decimal()
	}
	return given
}
