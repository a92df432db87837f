package legible

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// absent is an error whose methods panic on a nil pointer.
type absent struct{ text string }

func (a *absent) Error() string { return a.text }

// trapped panics in each method whose field is set.
type trapped struct{ text, unwrap, is any }

func (e trapped) Error() string {
	if e.text != nil {
		panic(e.text)
	}
	return "trapped"
}

func (e trapped) Unwrap() error {
	if e.unwrap != nil {
		panic(e.unwrap)
	}
	return nil
}

func (e trapped) Is(error) bool {
	if e.is != nil {
		panic(e.is)
	}
	return false
}

// circle is an error that wraps itself.
type circle struct{}

func (c *circle) Error() string { return "circle" }
func (c *circle) Unwrap() error { return c }

// circles is an error that wraps itself twice.
type circles struct{}

func (c *circles) Error() string   { return "circles" }
func (c *circles) Unwrap() []error { return []error{c, nil, c} }

// decided is an error that contains a handler's decision.
type decided struct {
	word string
	err  error
}

func (d *decided) Error() string { return d.word + ": " + d.err.Error() }
func (d *decided) Unwrap() error { return d.err }

// hostile contains texts that an error may have. Text must return them unchanged. The code that prints a text
// must escape it.
var hostile = map[string]string{
	"empty":        "",
	"escape":       "\x1b[2J\x1b]0;owned\x07",
	"control":      "a\x00b\rc\nd\x7f\u009b2J\u0085",
	"invalid_utf8": "a\xff\xc3\x28\xed\xa0\x80",
	"bidi":         "\u202a\u202e\u2066\u2069\u200f",
	"verbs":        "%s %d %!v(PANIC= %",
	"very_long":    strings.Repeat("long \x1b[2J", 100_000),
}

func again(d *decided, readable error) error { return &decided{d.word, readable} }

func TestReadableErrorsAreUnchanged(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			err := errors.New(text)
			if got := Text(err); got != text {
				t.Errorf("%.100q, not %.100q", got, text)
			}
			all := errors.Join(err, fmt.Errorf("and %w", &decided{"park", err}))
			if got := Error(all, again); got != all {
				t.Errorf("another error: %.100q", got)
			}
		})
	}
	if Text(nil) != "" || Error(nil, again) != nil {
		t.Error("nil gives a text or an error")
	}
}

func TestAPanickingErrorIsDescribedByTypeAndPanic(t *testing.T) {
	var none *absent
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil":                       {none, "the error is a nil of type *legible.absent: where nothing is wrong, return a plain nil"},
		"a_text":                    {trapped{text: "no\x1b[2J"}, "the error is of type legible.trapped, whose methods panic: no\x1b[2J"},
		"an_error":                  {trapped{text: errors.New("inner")}, "the error is of type legible.trapped, whose methods panic: inner"},
		"a_nil_error":               {trapped{text: none}, "the error is of type legible.trapped, whose methods panic: "},
		"invalid_utf8":              {trapped{text: "\xff\xfe"}, "whose methods panic: \xff\xfe"},
		"a_panic_value_that_panics": {trapped{text: trapped{text: "again"}}, "the error is of type legible.trapped, whose methods panic: "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(c.err); !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if got := Error(c.err, again); got == nil || !strings.Contains(got.Error(), c.want) || errors.Unwrap(got) != nil {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestWrappedErrorsAreExamined(t *testing.T) {
	var none *absent
	for name, inner := range map[string]error{
		"a_nil":                 none,
		"a_text_that_panics":    trapped{text: "x"},
		"an_Unwrap_that_panics": trapped{unwrap: "x"},
		"an_Is_that_panics":     trapped{is: "x"},
		"itself":                &circle{},
		"itself_twice":          &circles{},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{inner, safely{inner}, errors.Join(errors.New("x"), nil, inner), errors.Join(safely{safely{inner}})} {
				got := Error(err, again)
				if got == nil || errors.Unwrap(got) != nil || got.Error() == "" {
					t.Errorf("%T: got %v", err, got)
				}
			}
			carried := Error(error(errors.Join(errors.New("x"), &decided{"park", inner})), again)
			var d *decided
			if !errors.As(carried, &d) || d.word != "park" || d.err == nil || !strings.Contains(carried.Error(), "park: the error ") {
				t.Errorf("the decision is lost: %v", carried)
			}
		})
	}
	t.Run("many_readable_errors_are_unchanged", func(t *testing.T) {
		var many []error
		for i := range maxWrappedErrors / 2 {
			many = append(many, fmt.Errorf("%d", i))
		}
		if all := errors.Join(many...); Error(all, again) != all {
			t.Error("another error")
		}
	})
}

// safely is an error that wraps another error and does not use its text.
type safely struct{ err error }

func (s safely) Error() string { return "safely" }
func (s safely) Unwrap() error { return s.err }
