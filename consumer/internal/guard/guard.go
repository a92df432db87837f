// Package guard calls functions of users, sources and stores. If the called function panics, the caller gets an error,
// and the process continues.
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/legible"
)

// Guard contains the name and logger of one consumer. The methods of Guard may be called from several goroutines.
type Guard struct {
	// Consumer is the name of the consumer.
	Consumer string
	Logger   *slog.Logger
	// Plan contains functions of tests.
	Plan faults.Plan
}

// LogPanic logs a panic with its stack. The value of the panic is not logged, because it may contain a
// payload.
func LogPanic(logger *slog.Logger, consumer, where string, value any) {
	logger.Error(where+" panicked; this is a fault of the program", "consumer", consumer, "panic", legible.Panic(value), "stack", string(debug.Stack()))
}

// Panicked logs a panic and returns an error. The parameter where names the function that panicked.
func (g *Guard) Panicked(where string, value any) error {
	LogPanic(g.Logger, g.Consumer, where, value)
	return fmt.Errorf("%s panicked: %s", where, legible.Panic(value))
}

// Source calls a method of the source and returns its error. The parameter what names the method. If the method panics,
// Source returns an error.
func (g *Guard) Source(what string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = g.Panicked("the source's "+what, value)
		}
	}()
	return Readable(call())
}

// At notifies the test's Plan that a fault point was reached. The parameter n is the number of messages at that point.
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

// Readable converts an error of a user's function to an error whose method Error does not panic. If err is a
// semel.HandlerError, the result has the same decision.
func Readable(err error) error { return legible.Error(err, decidedAgain) }

func decidedAgain(decided *semel.HandlerError, readable error) error {
	return &semel.HandlerError{Decision: decided.Decision, After: decided.After, Reason: decided.Reason, Err: readable}
}
