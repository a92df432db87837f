// Package newer holds what stores answer where their tables have a number or a
// name that this release does not know: a newer release wrote it. Nobody guesses
// what it means; the message stays where it is until that release takes it.
package newer

import (
	"errors"
	"fmt"
)

// Err is what every Error wraps.
var Err = errors.New("written by a newer release")

// Error is one such number or name.
type Error struct {
	// What is unknown, such as "outcome", Value what is written there, and Table
	// where.
	What, Value, Table string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s has the %s %s, %v: leave its message to that release, or run it here, too", e.Table, e.What, e.Value, Err)
}

func (e *Error) Unwrap() error { return Err }
