package proof

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// failure is the panic with which Check ends a run.
type failure struct{ error }

// Check ends the run if err is not nil. A run that Check ends has failed and has no ledger. Call Check only in the
// goroutine of the run.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must returns the value, or ends the run like Check.
func Must[V any](value V, err error) V {
	Check(err)
	return value
}

// Attempt calls the function do and returns the error with which do ends the run, or nil.
func Attempt(do func()) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = failed.error
		default:
			panic(failed)
		}
	}()
	do()
	return nil
}

// During adds a description to the error with which the function do ends the run.
func During(what string, do func()) {
	if err := Attempt(do); err != nil {
		Check(fmt.Errorf("%s: %w", what, err))
	}
}

// Until calls the function condition repeatedly until condition returns true. The run ends if ctx ends first.
func Until(ctx context.Context, every time.Duration, condition func() bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			Check(ctx.Err())
		case <-tick.C:
		}
	}
}

// Within is like Until, but waits at most for the time limit. Within reports whether condition returned true.
func Within(ctx context.Context, limit, every time.Duration, condition func(context.Context) bool) bool {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := Attempt(func() { Until(within, every, func() bool { return condition(within) }) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false
	}
	Check(err)
	return true
}
