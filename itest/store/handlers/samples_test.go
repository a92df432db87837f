package handlers

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semeltest"
	"github.com/semel-go/semel/store"
)

// tables lets samples read and write in a store of any kind.
type tables[Tx any] struct {
	Store store.TxStore[Tx]
	// Add adds n to the number under a name.
	Add func(ctx context.Context, tx Tx, name string, n int64) error
	// Set stores the text under a name.
	Set func(ctx context.Context, tx Tx, name, value string) error
	// Get returns the text under a name, or "" if there is no text.
	Get func(ctx context.Context, tx Tx, name string) (string, error)
	// All returns all names with their texts, sorted.
	All func(ctx context.Context) (string, error)
	// End commits the transaction, which only Semel should do. End is nil if handlers cannot end their
	// transaction.
	End func(ctx context.Context, tx Tx) error
}

// sample is a handler with or without a fault.
type sample[Tx any] struct {
	Name string
	// In is the name of the first subtest that finds the fault, and Says is a part of the subtest's message. In and
	// Says are empty for a handler without a fault.
	In, Says string
	// Make changes the correct handler into the sample.
	Make func(t *testing.T, s *fixture[Tx])
}

// onServers returns only the samples whose result depends on the store. Other samples do not run on servers, because a
// server is slower.
func onServers[Tx any](all []sample[Tx]) []sample[Tx] {
	return slices.DeleteFunc(all, func(s sample[Tx]) bool {
		return !slices.Contains([]string{
			"adds", "reads and writes", "keeps a result", "writes an intent", "applies versions in order",
			"writes outside its transaction", "swallows errors of its transaction", "keeps its transaction for the next message",
			"leaves a goroutine", "ends its transaction", "skips what it has seen in memory",
		}, s.Name)
	})
}

// fixture is the state of one test, with the handler under test.
type fixture[Tx any] struct {
	semeltest.Handler[Tx]
	tables[Tx]

	mu      sync.Mutex
	outside map[string]int // effects outside of any transaction; mu guards the map
}

// newHandler returns the sample's handler on a new state.
func (s sample[Tx]) newHandler(t *testing.T, in tables[Tx]) semeltest.Handler[Tx] {
	made := &fixture[Tx]{tables: in, outside: map[string]int{}}
	made.Handler = semeltest.Handler[Tx]{
		Store: in.Store, Handle: made.add, Effect: made.effect,
		Messages: []*semel.Message{
			semeltest.Message("payment-1", `{"amount":30}`), semeltest.Message("payment-2", `{"amount":12}`),
			semeltest.Message("payment-3", `{"amount":5}`),
		},
	}
	if s.Make != nil {
		s.Make(t, made)
	}
	return made.Handler
}

// add is a handler without a fault.
func (s *fixture[Tx]) add(ctx context.Context, tx Tx, m *semel.Message) error {
	p, err := semel.JSON[struct{ Amount int64 }](m)
	if err != nil {
		return err
	}
	return s.Add(ctx, tx, "balance", p.Amount)
}

// write counts an effect outside of the transaction.
func (s *fixture[Tx]) write(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outside[name]++
}

func (s *fixture[Tx]) effect(ctx context.Context) (string, error) {
	text, err := s.All(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.outside)) {
		text += "\noutside " + name + " " + strconv.Itoa(s.outside[name])
	}
	return text, err
}

// runBefore makes the handler call the function f before the handler adds the amount.
func (s *fixture[Tx]) runBefore(f func(ctx context.Context, tx Tx, m *semel.Message) error) {
	s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
		if err := f(ctx, tx, m); err != nil {
			return err
		}
		return s.add(ctx, tx, m)
	}
}

// addCharge makes the handler charge a card at a provider before the handler adds the amount. The function
// key returns the idempotency key.
func (s *fixture[Tx]) addCharge(t *testing.T, key func(m *semel.Message) string) {
	s.Provider = semeltest.NewProvider(t)
	s.runBefore(func(ctx context.Context, _ Tx, m *semel.Message) error {
		return s.call(ctx, http.MethodPost, key(m), string(m.Body))
	})
}

func chargeKey(m *semel.Message) string { return m.IdempotencyKey("charge") }

// call sends a request to the provider and returns an error for every status but 200.
func (s *fixture[Tx]) call(ctx context.Context, method, key, body string) error {
	status, err := s.status(ctx, method, key, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the provider answered %d", status)
	}
	return err
}

func (s *fixture[Tx]) status(ctx context.Context, method, key, body string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.Provider.URL, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
