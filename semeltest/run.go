package semeltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/store"
)

// Handler describes what Run tests: a handler, its store, and its messages.
type Handler[Tx any] struct {
	// Store is the store of the consumer, with its tables. Run uses other names for its consumers, so the
	// store need not be empty.
	Store store.TxStore[Tx]
	// Handle is the handler that the program passes to consumer.New.
	Handle func(ctx context.Context, tx Tx, m *semel.Message) error
	// Messages are two or more messages that the handler can process, in the order of their delivery. Run
	// delivers copies of these messages.
	Messages []*semel.Message
	// Effect returns the changes that the handler has made, as a text: rows of its tables, files, calls. Equal
	// states must give equal texts, so sort the rows.
	Effect func(ctx context.Context) (string, error)
	// Config is the policy of the consumer. Run uses Identity, Fingerprint, Strategy, Version, Filter, Retry
	// and OnConflict. Run ignores the source, lanes, observers, log and retention. In the default, the
	// identity is identity.CloudEvents.
	Config consumer.Config
	// Provider is the provider that the handler calls; nil if the handler makes no calls.
	Provider *Provider
}

// Run runs all subtests. start returns a handler with an empty state: it creates or empties the tables that
// the handler writes, and creates the handler. Run calls start at least once for each subtest. So variables
// that start does not create keep their state between subtests. A failed subtest says what happened, to which
// message, and how to fix the fault. At the end Run logs a table of all subtests.
func Run[Tx any](t *testing.T, start func(t *testing.T) Handler[Tx]) {
	t.Helper()
	s := &session[Tx]{start: start}
	var all report
	for _, c := range cases[Tx]() {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Helper()
			err := s.run(t, c)
			all = append(all, result{c.name, err})
			var skip *notRun
			switch {
			case errors.As(err, &skip):
				t.Skip(skip.why)
			case err != nil:
				t.Error(err)
			}
		})
	}
	t.Log(all)
}

// Message returns a message with the headers of a CloudEvent (ce-id, ce-source "semeltest"). The default of
// Handler.Config, identity.CloudEvents, needs these headers.
func Message(id, body string) *semel.Message {
	return &semel.Message{
		Headers: semel.Headers{
			{Name: "ce-specversion", Value: []byte("1.0")}, {Name: "ce-id", Value: []byte(id)},
			{Name: "ce-source", Value: []byte("semeltest")}, {Name: "ce-type", Value: []byte("semeltest")},
		},
		Body: []byte(body),
	}
}

// result is the result of a subtest: nil, a *notRun, or the fault that was found.
type result struct {
	name string
	err  error
}

// notRun says why a subtest does not apply.
type notRun struct{ why string }

func (e *notRun) Error() string { return "not run: " + e.why }

// report prints all results as a table. If two subtests found the same sentence, it is printed once.
type report []result

func (r report) String() string {
	var b strings.Builder
	b.WriteString("\n")
	said := map[string]string{}
	for _, x := range r {
		var skip *notRun
		word, why := "ok", ""
		switch {
		case errors.As(x.err, &skip):
			word, why = "-", skip.why
		case x.err != nil:
			word = "FAIL"
			why, _, _ = strings.Cut(x.err.Error(), "\n")
		}
		if by := said[why]; by != "" && word == "FAIL" {
			why = "see " + by
		} else {
			said[why] = x.name
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-4s  %-36s  %s", word, x.name, why), " ") + "\n")
	}
	return b.String()
}
