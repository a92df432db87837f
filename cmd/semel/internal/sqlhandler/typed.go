package sqlhandler

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/internal/strictjson"
)

// inputValue is a value from a message or a response, before its type is checked.
type inputValue struct {
	kind selectors.Kind
	// text is a string without quotes and escapes, or the text of a number, true or false.
	text string
	json func() []byte
}

// fromMessage returns a value that a selector found.
func fromMessage(v selectors.Value) inputValue {
	return inputValue{v.Kind(), v.Text(), func() []byte { return member(v) }}
}

// fromResponse converts a value in a response to inputValue.
func fromResponse(v strictjson.Value) inputValue {
	kinds := [...]selectors.Kind{strictjson.Null: selectors.Null, strictjson.Bool: selectors.Bool,
		strictjson.Number: selectors.Number, strictjson.String: selectors.String, strictjson.Array: selectors.JSON, strictjson.Object: selectors.JSON}
	return inputValue{kinds[v.Kind()], string(v.Text()), v.Raw}
}

// isText reports whether the value is text. Headers and keys are text if they are valid UTF-8.
func (g inputValue) isText() bool {
	return g.kind == selectors.String || g.kind == selectors.Bytes && utf8.ValidString(g.text)
}

// number returns the text of a JSON number, or of a string that contains a number.
func (g inputValue) number() (string, bool) {
	if g.kind == selectors.Number {
		return g.text, true
	}
	d, err := strictjson.Parse([]byte(g.text))
	return g.text, g.isText() && err == nil && d.Root().Kind() == strictjson.Number && len(d.Root().Raw()) == len(g.text)
}

// value returns the value to pass to the database for a parameter of this type. The error names the required
// type and does not contain the value.
func (t ParamType) value(g inputValue, texts bool) (any, error) {
	no := fmt.Errorf("is not of type %s", t)
	switch {
	case t == JSON && (g.kind != selectors.Bytes || g.isText()):
		return string(g.json()), nil
	case t == Text && g.isText():
		return g.text, nil
	case t == Timestamp && g.isText():
		at, err := time.Parse(time.RFC3339Nano, g.text)
		if err != nil {
			return nil, errors.New("is not a timestamp like 2006-01-02T15:04:05Z")
		}
		return at.UTC().Format(time.RFC3339Nano), nil
	case t == Boolean && (g.kind == selectors.Bool || g.kind == selectors.Bytes && (g.text == "true" || g.text == "false")):
		if texts {
			return g.text, nil
		}
		return g.text == "true", nil
	case t != Integer && t != Decimal:
		return nil, no
	}
	text, ok := g.number()
	if !ok {
		return nil, no
	}
	exact := string(strictjson.AppendDecimal(nil, []byte(text)))
	whole, err := strconv.ParseInt(exact, 10, 64)
	switch {
	case t == Integer && err != nil:
		return nil, no
	case texts:
		return exact, nil
	case t == Integer:
		return whole, nil
	case beyondFloat(text):
		return nil, errBeyond
	}
	return numberOf(text, exact), nil
}

// Constant returns an error if the selector is a constant of another type than t. If a constant had another
// type, every message would fail. Constant returns nil for other selectors, and if t is empty.
func (d Dialect) Constant(t ParamType, s selectors.Selector) error {
	if t == "" || !s.Constant() {
		return nil
	}
	found, err := selectors.Append(nil, &semel.Message{}, []selectors.Selector{s})
	if err == nil {
		_, err = t.value(fromMessage(found[0]), d.sendsText)
	}
	return err
}

var errBeyond = errors.New("is larger than any number that the database can calculate with: it would become an infinity; where it is not calculated with, type: json keeps it as text")

// beyondFloat reports whether a number is larger than the largest float. SQLite calculates with a number
// beyond the largest float as infinity, even if the number is stored as text.
func beyondFloat(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	return err != nil
}

// untypedValue returns the value to pass to the database for a parameter without a type. The method
// rejects a text that becomes NaN or infinity in a numeric column, because later amounts could not correct
// the column. If plain is true, all columns that the parameter is written to store text.
func (h *Handler) untypedValue(v selectors.Value, plain bool) (any, error) {
	value := boundValue(v)
	if h.sendsText {
		value = asText(v, value)
	}
	switch text, isText := value.(string); {
	case !isText:
	case v.Kind() == selectors.Number && !h.sendsText && beyondFloat(text):
		return nil, errBeyond
	case v.Kind() != selectors.Number && !plain && notFinite(text):
		return nil, errors.New("is a text that a number's column reads as NaN or as an infinity; " +
			"give the parameter a type: decimal if it is a number, text if it is text, as params: {NAME: {from: SELECTOR, type: text}}")
	}
	return value, nil
}

// notFinite reports whether PostgreSQL would read a text as NaN or infinity in a numeric column. For NaN and
// infinity, PostgreSQL ignores case, a sign, and blanks around the word.
func notFinite(text string) bool {
	word := strings.Trim(text, " \t\n\v\f\r")
	if word != "" && (word[0] == '+' || word[0] == '-') {
		word = word[1:]
	}
	return slices.ContainsFunc([]string{"nan", "inf", "infinity"}, func(w string) bool { return strings.EqualFold(w, word) })
}
