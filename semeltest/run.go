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

// Handler is what Run tests: a handler, its store, and the messages that it gets.
type Handler[Tx any] struct {
	// Store is the store of the consumer, with its tables. Run uses own names for its consumers, so the
	// store need not be empty.
	Store store.TxStore[Tx]
	// Handle is the handler that the program passes to consumer.New.
	Handle func(ctx context.Context, tx Tx, m *semel.Message) error
	// Messages are two or more messages that the handler can process, in the order in which they are
	// delivered. Run delivers copies of them.
	Messages []*semel.Message
	// Effect returns what the handler has changed, as a text: rows of its tables, files, calls. Two
	// equal states must give the same text, so sort rows.
	Effect func(ctx context.Context) (string, error)
	// Config is the policy of the consumer. Identity, Fingerprint, Strategy, Version, Filter, Retry and
	// OnConflict matter here; Run ignores the source, lanes, observers, log and retention. The default
	// has the identity identity.CloudEvents.
	Config consumer.Config
	// Provider is the other side of the handler's calls, if it makes any.
	Provider *Provider
	// Process is the database that function Process returned. If it is not empty, two subtests start
	// the test again as a child process and kill it with SIGKILL, before and after a COMMIT. The store
	// must outlive its process: a SQLite file or PostgreSQL. On Windows these subtests are skipped.
	Process string
}

// Run runs all subtests. start returns a handler on an empty state: it opens or empties the tables that
// the handler writes and makes the handler. Run calls start at least once for each subtest, so state
// in variables that start does not create is kept between subtests. A failed subtest says what
// happened, to which message, and how to fix it; at the end Run logs a table of all subtests.
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

// inner returns the handler in the form of the kit.
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

// Message returns a message with the headers of a CloudEvent (ce-id, ce-source "semeltest"), as
// identity.CloudEvents, the default of Handler.Config, expects it.
func Message(id, body string) *semel.Message {
	return &semel.Message{
		Headers: semel.Headers{
			{Name: "ce-specversion", Value: []byte("1.0")}, {Name: "ce-id", Value: []byte(id)},
			{Name: "ce-source", Value: []byte("semeltest")}, {Name: "ce-type", Value: []byte("semeltest")},
		},
		Body: []byte(body),
	}
}
