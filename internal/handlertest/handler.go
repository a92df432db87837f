package handlertest

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/store"
)

// T is the part of a *testing.T that a subtest uses.
type T interface {
	Helper()
	// Name returns the name of the test, with the names of the tests around it.
	Name() string
	Context() context.Context
	Cleanup(f func())
	// Fatal and Fatalf end the test at once.
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Handler is what Run tests; the fields are those of semeltest.Handler.
type Handler[Tx any] struct {
	Store    store.TxStore[Tx]
	Handle   func(ctx context.Context, tx Tx, m *semel.Message) error
	Messages []*semel.Message
	Effect   func(ctx context.Context) (string, error)
	Config   consumer.Config
	// Steps, if not empty, replaces Handle.
	Steps []Step[Tx]
	// Provider is nil if the handler makes no calls.
	Provider *Provider
	// Process is nil if no process is killed.
	Process *Process
}

// Step is a part of a handler with a transaction of its own; see consumer.Step.
type Step[Tx any] struct {
	Name string
	Run  func(ctx context.Context, tx Tx, m *semel.Message) error
}

// Run calls the function each once for every subtest, with the name and the function of the subtest, and returns the
// results of the subtests that ran. The function each runs the subtest, and returns its error, or an error that says
// why the subtest has not returned. The function start returns a handler whose state is empty; each subtest calls start
// at least once.
func Run[Tx any](start func(t T) Handler[Tx], each func(name string, run func(t T) error) error) Report {
	s := &session[Tx]{start: start}
	var all Report
	for _, c := range cases[Tx]() {
		called := false
		err := each(c.name, func(t T) error {
			t.Helper()
			called = true
			return s.run(t, c)
		})
		if called {
			all = append(all, Result{c.name, c.group, err})
		}
	}
	return all
}
