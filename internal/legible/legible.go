// Package legible makes values safe to print. Some errors crash the process, or loop forever, when they are printed or
// examined: a nil pointer that is returned as an error, an error whose methods panic, or an error that wraps itself.
// Text and Error replace errors that are not safe to print or to examine. Printable escapes special characters in texts
// that do not come from Semel, and Span formats durations.
package legible

import (
	"errors"
	"fmt"
	"reflect"
)

// Text returns the text of err. If the methods of err panic, Text returns a description.
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

// describe returns a text for an error with a method that panicked. The parameter value is the value of the panic.
func describe(err error, value any) string {
	if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Sprintf("the error is a nil of type %T: where nothing is wrong, return a plain nil", err)
	}
	return fmt.Sprintf("the error is of type %T, whose methods panic: %v", err, value)
}

// Error returns err if its methods, and the methods of all errors that it wraps, return normally. If a method panics or
// does not return, Error returns another error, which describes the fault and wraps nothing, so that errors.As and
// errors.Is are safe. If err wraps an error of type D, Error calls the function again with the first such error, and
// returns the result of that function.
func Error[D error](err error, again func(decided D, readable error) error) error {
	if err == nil {
		return nil
	}
	left := maxWrappedErrors
	fault := findFault(err, &left)
	if fault == "" {
		return err
	}
	readable := errors.New(fault)
	left = maxWrappedErrors
	if decided, ok := find[D](err, &left); ok {
		return again(decided, readable)
	}
	return readable
}

// maxWrappedErrors is the maximum number of errors that one error may wrap. If an error wraps more errors, it is
// treated as an error that wraps itself.
const maxWrappedErrors = 10_000

// findFault returns a description of the fault of err, or an empty string if err has no fault. The parameter left is
// the number of errors that may still be examined.
func findFault(err error, left *int) (fault string) {
	defer func() {
		if value := recover(); value != nil {
			fault = describe(err, value)
		}
	}()
	if *left--; *left < 0 {
		return fmt.Sprintf("the error is of type %T, which wraps itself, or more than %d others", err, maxWrappedErrors)
	}
	for _, e := range unwrapAll(err) {
		if fault = findFault(e, left); fault != "" {
			return fault
		}
	}
	_ = err.Error()
	if is, ok := err.(interface{ Is(error) bool }); ok {
		is.Is(errNone)
	}
	return ""
}

// errNone is an arbitrary target for the Is methods of examined errors.
var errNone = errors.New("none")

// unwrapAll returns the errors that err wraps. No element of the result is nil.
func unwrapAll(err error) []error {
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

// find returns the first error of type D that err wraps. Errors that panic are skipped. The parameter left is the
// number of errors that may still be examined.
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
	for _, e := range unwrapAll(err) {
		if found, ok = find[D](e, left); ok {
			return found, true
		}
	}
	return found, false
}
