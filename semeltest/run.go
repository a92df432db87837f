package semeltest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/handlertest"
	"github.com/semel-go/semel/store"
)

// Handler describes what Run tests: a handler, its store, and its messages.
type Handler[Tx any] struct {
	// Store is the store of the consumer, with its tables. Run gives its consumers other names, so the store need not
	// be empty.
	Store store.TxStore[Tx]
	// Handle is the handler that the program passes to consumer.New.
	Handle func(ctx context.Context, tx Tx, m *semel.Message) error
	// Messages are two or more messages that the handler can process, in the order of their delivery. Run delivers
	// copies of Messages.
	Messages []*semel.Message
	// Effect returns the changes that the handler has made, as a text: rows of its tables, files, calls. Equal
	// states must give equal texts, so sort the rows.
	Effect func(ctx context.Context) (string, error)
	// Config is the policy of the consumer. Run uses Identity, Fingerprint, Strategy, Version, Filter, Retry and
	// OnConflict. With Retention.Keep a subtest delivers expired messages, and with a Replay without Effects a subtest
	// delivers the messages in a replay. Run ignores the source, lanes, batch limits, Provider, observers, log and Canary. In
	// the default, the identity is identity.CloudEvents.
	Config consumer.Config
	// Provider is the payment provider that the handler calls, or nil if the handler makes no calls.
	Provider *Provider
	// Process is the database that the function Process returned. If Process is not empty, two subtests start the test
	// again as a child process and kill that process with SIGKILL, before and after a COMMIT. The store must outlive
	// its process: a SQLite file or PostgreSQL. On Windows the subtests with child processes are skipped.
	Process string
}

// Run runs all subtests. The function start returns a handler with an empty state: it creates or empties the tables
// that the handler writes, and creates the handler. Run calls start at least once for each subtest. Variables that
// start does not create therefore keep their values between subtests. A failed subtest says what happened, to which
// message, and how to fix the fault. At the end Run logs a table of all subtests.
func Run[Tx any](t *testing.T, start func(t *testing.T) Handler[Tx]) {
	t.Helper()
	made := func(t handlertest.T) handlertest.Handler[Tx] { return start(t.(*testing.T)).inner() }
	report := handlertest.Run(made, func(name string, run func(t handlertest.T) error) error {
		err := errors.New("the subtest was ended")
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Helper()
			err = run(t)
			var skip *handlertest.NotRun
			switch {
			case errors.As(err, &skip):
				t.Skip(skip.Why)
			case err != nil:
				t.Error(err)
			}
		})
		return err
	})
	t.Log(report)
}

// inner converts the handler to the type of package handlertest.
func (h Handler[Tx]) inner() handlertest.Handler[Tx] {
	inner := handlertest.Handler[Tx]{Store: h.Store, Handle: h.Handle, Messages: h.Messages, Effect: h.Effect, Config: h.Config}
	if h.Provider != nil {
		inner.Provider = &h.Provider.server
		inner.Provider.Forgets = h.Provider.Forgets
	}
	if h.Process != "" {
		inner.Process = &handlertest.Process{Database: h.Process, Command: again}
	}
	return inner
}

// Message returns a message with the headers of a CloudEvent (ce-id, ce-source "semeltest"). The default of
// Handler.Config, identity.CloudEvents, needs the headers ce-id and ce-source.
func Message(id, body string) *semel.Message {
	return &semel.Message{
		Headers: semel.Headers{
			{Name: "ce-specversion", Value: []byte("1.0")}, {Name: "ce-id", Value: []byte(id)},
			{Name: "ce-source", Value: []byte("semeltest")}, {Name: "ce-type", Value: []byte("semeltest")},
		},
		Body: []byte(body),
	}
}
