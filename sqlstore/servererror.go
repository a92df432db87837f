package sqlstore

import (
	"errors"

	"github.com/semel-go/semel/internal/legible"
)

// readable is err, or where something of it cannot be read, an error that says
// so: whoever looks for a type in it would meet what panics. What the store has
// decided about it stays.
func readable(err error) error {
	return legible.Error(err, func(decided *storeError, r error) error { return &storeError{decided.doing, decided.class, r} })
}

// stateError is an error of a server, as every driver makes it.
type stateError interface {
	error
	SQLState() string
}

// serverError is the error of a server in err with its code.
func serverError(err error) (by stateError, state string) {
	by, state, _ = findError(err, stateError.SQLState)
	return by, state
}

// findError finds an error of this type in err, and what it answers. One that cannot
// answer, such as a nil of a driver's type that somebody returned as an error, is
// nothing that a database said.
func findError[E error, V any](err error, ask func(E) V) (by E, answer V, ok bool) {
	var none E
	var nothing V
	defer func() {
		if recover() != nil {
			by, answer, ok = none, nothing, false
		}
	}()
	if ok = errors.As(err, &by); ok {
		answer = ask(by)
	}
	return by, answer, ok
}
