// Package newer contains the error that stores return for a stored number or name that this release does not
// know, because a newer release has written it. The message is not changed until a release that knows the
// value handles the message.
package newer

import (
	"errors"
	"fmt"
)

// Err is wrapped by every Error.
var Err = errors.New("written by a newer release")

// Error reports a stored number or name that this release does not know.
type Error struct {
	// What is the kind of the value, such as "outcome". Value is the stored value. Table is the name of the
	// table.
	What, Value, Table string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s has the %s %s, %v: leave its message to that release, or run that release here", e.Table, e.What, e.Value, Err)
}

func (e *Error) Unwrap() error { return Err }
