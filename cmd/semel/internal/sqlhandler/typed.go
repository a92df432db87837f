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

// given is a value of a message or of a response, before its type is checked.
type given struct {
	kind selectors.Kind
	// text is a string without quotes and escapes, or a number, true or false as written.
	text string
	// json returns the value as JSON.
	json func() []byte
}

// givenBy returns a value that a selector found.
func givenBy(v selectors.Value) given {
	return given{v.Kind(), v.Text(), func() []byte { return member(v) }}
}

// answered returns a value of a response.
func answered(v strictjson.Value) given {
	kinds := [...]selectors.Kind{strictjson.Null: selectors.Null, strictjson.Bool: selectors.Bool,
		strictjson.Number: selectors.Number, strictjson.String: selectors.String, strictjson.Array: selectors.JSON, strictjson.Object: selectors.JSON}
	return given{kinds[v.Kind()], string(v.Text()), v.Raw}
}

// isText reports whether the value is text. A header or a key is text if it is UTF-8.
func (g given) isText() bool {
	return g.kind == selectors.String || g.kind == selectors.Bytes && utf8.ValidString(g.text)
}

// number returns the number as it was written: a JSON number, or a text with a number.
func (g given) number() (string, bool) {
	if g.kind == selectors.Number {
		return g.text, true
	}
	d, err := strictjson.Parse([]byte(g.text))
	return g.text, g.isText() && err == nil && d.Root().Kind() == strictjson.Number && len(d.Root().Raw()) == len(g.text)
}

// value returns the value to bind for this type, as bound and asText do. The error names the missing
// type, and shows nothing of the value.
func (t ParamType) value(g given, texts bool) (any, error) {
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

// Constant returns why no message can have a value of this type at the selector: the selector is a
// constant of another type. Constant returns nil for every other selector, and without a type.
func (d Dialect) Constant(t ParamType, s selectors.Selector) error {
	if t == "" || !s.Constant() {
		return nil
	}
	found, err := selectors.Append(nil, &semel.Message{}, []selectors.Selector{s})
	if err == nil {
		_, err = t.value(givenBy(found[0]), d.texts)
	}
	return err
}

// errBeyond: see beyondFloat.
var errBeyond = errors.New("is larger than any number that the database can calculate with: it would become an infinity; where it is not calculated with, type: json keeps it as text")

// beyondFloat reports whether a number is larger than a float can be. SQLite calculates with such a
// number, also as text, as with an infinity.
func beyondFloat(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	return err != nil
}

// untyped returns the value to bind for a value without a type. untyped refuses text that becomes NaN
// or an infinity in a numeric column, where no later amount corrects it. plain reports that the
// database keeps the value as text in all its places.
func (h *Handler) untyped(v selectors.Value, plain bool) (any, error) {
	value := bound(v)
	if h.texts {
		value = asText(v, value)
	}
	switch text, isText := value.(string); {
	case !isText:
	case v.Kind() == selectors.Number && !h.texts && beyondFloat(text):
		return nil, errBeyond
	case v.Kind() != selectors.Number && !plain && notFinite(text):
		return nil, errors.New("is a text that a number's column reads as NaN or as an infinity; " +
			"give the parameter a type: decimal if it is a number, text if it is text, as params: {NAME: {from: SELECTOR, type: text}}")
	}
	return value, nil
}

// notFinite reports whether PostgreSQL reads a text as NaN or an infinity where a number is expected:
// in any case, with a sign and with blanks around it.
func notFinite(text string) bool {
	word := strings.Trim(text, " \t\n\v\f\r")
	if word != "" && (word[0] == '+' || word[0] == '-') {
		word = word[1:]
	}
	return slices.ContainsFunc([]string{"nan", "inf", "infinity"}, func(w string) bool { return strings.EqualFold(w, word) })
}
