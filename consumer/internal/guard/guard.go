// Package guard calls functions of users, sources and stores, so that a panic in one of them
// becomes an error of the call and not the end of the process.
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/legible"
)

// Guard belongs to one consumer. Its methods may be called from several goroutines.
type Guard struct {
	// Consumer is the name of the consumer.
	Consumer string
	Logger   *slog.Logger
	// Plan is for tests.
	Plan faults.Plan
}

// LogPanic logs a panic with its stack. LogPanic leaves out the panic's value, which may
// contain a payload.
func LogPanic(logger *slog.Logger, consumer, where string, value any) {
	logger.Error(where+" panicked; this is a fault of the program", "consumer", consumer, "panic", legible.Panic(value), "stack", string(debug.Stack()))
}

// Panicked logs a panic and returns it as an error. where names the function that panicked.
func (g *Guard) Panicked(where string, value any) error {
	LogPanic(g.Logger, g.Consumer, where, value)
	return fmt.Errorf("%s panicked: %s", where, legible.Panic(value))
}

// Source calls a method of the source, which what names, and returns its error. A panic is an error.
func (g *Guard) Source(what string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = g.Panicked("the source's "+what, value)
		}
	}()
	return Readable(call())
}

// At reports to the plan of a test that a fault point was reached, with the number of messages there.
func (g *Guard) At(p faults.Point, n int) {
	if g.Plan.At == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			LogPanic(g.Logger, g.Consumer, "faults.Plan.At", value)
		}
	}()
	g.Plan.At(p, n)
}

// Readable returns an error of a user's function in a form whose text can be read without a panic. If
// the error is a semel.HandlerError, the result has the same decision.
func Readable(err error) error { return legible.Error(err, decidedAgain) }

func decidedAgain(decided *semel.HandlerError, readable error) error {
	return &semel.HandlerError{Decision: decided.Decision, After: decided.After, Reason: decided.Reason, Err: readable}
}
