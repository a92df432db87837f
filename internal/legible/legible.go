// Package legible guards against errors that cannot be read: a nil pointer that
// a function returned as an error, one whose methods panic, or one that wraps
// itself. Whoever prints or examines such an error outside of a recover ends the
// process, or never comes to an end. Printable and Span write for people what others
// wrote, and how long something is.
package legible

import (
	"errors"
	"fmt"
	"reflect"
)

// Text is the text of an error, also of one that cannot be read.
func Text(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if value := recover(); value != nil {
			text = describe(err, value)
		}
	}()
	return err.Error()
}

// describe says what is wrong with an error whose methods panicked.
func describe(err error, value any) string {
	if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Sprintf("the error is a nil of type %T: where nothing is wrong, return a plain nil", err)
	}
	return fmt.Sprintf("the error is of type %T, whose methods panic: %v", err, value)
}

// Error returns err if it and all that it wraps can be read. Otherwise it
// returns an error that says what cannot, and wraps nothing: whoever looks for a
// type in it would meet what panics. Of errors that err wraps as a D, the first
// is told to again, which returns what is to stand for it.
func Error[D error](err error, again func(decided D, readable error) error) error {
	if err == nil {
		return nil
	}
	left := most
	fault := unreadable(err, &left)
	if fault == "" {
		return err
	}
	readable := errors.New(fault)
	left = most
	if decided, ok := find[D](err, &left); ok {
		return again(decided, readable)
	}
	return readable
}

// most is how many errors one may wrap. One with more is taken for one that
// wraps itself, of which a walk never comes to an end.
const most = 10_000

// unreadable says what of err cannot be read, empty if all can. It looks at so
// many errors as are left.
func unreadable(err error, left *int) (fault string) {
	defer func() {
		if value := recover(); value != nil {
			fault = describe(err, value)
		}
	}()
	if *left--; *left < 0 {
		return fmt.Sprintf("the error is of type %T, which wraps itself, or more than %d others", err, most)
	}
	for _, e := range wrapped(err) {
		if fault = unreadable(e, left); fault != "" {
			return fault
		}
	}
	_ = err.Error()
	if is, ok := err.(interface{ Is(error) bool }); ok {
		is.Is(errNone)
	}
	return ""
}

// errNone is no error: it stands for whatever somebody may look for.
var errNone = errors.New("none")

// wrapped are the errors that err wraps.
func wrapped(err error) []error {
	var all []error
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		all = []error{w.Unwrap()}
	case interface{ Unwrap() []error }:
		all = w.Unwrap()
	}
	for i := 0; i < len(all); i++ {
		if all[i] == nil {
			all = append(all[:i:i], all[i+1:]...)
			i--
		}
	}
	return all
}

// find looks for a D in what of err can be read, in so many errors as are left.
func find[D error](err error, left *int) (found D, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	if *left--; *left < 0 {
		return found, false
	}
	if d, is := err.(D); is && !reflect.ValueOf(d).IsZero() {
		return d, true
	}
	for _, e := range wrapped(err) {
		if found, ok = find[D](e, left); ok {
			return found, true
		}
	}
	return found, false
}
