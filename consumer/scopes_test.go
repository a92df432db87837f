package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// interning is a store that counts the calls of Scope and records the largest number of sources in one call.
type interning struct {
	*memstore.Store
	alone, together, most atomic.Int64
}

func (s *interning) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	s.alone.Add(1)
	return s.Store.Scope(ctx, consumer, source, generation)
}

func (s *interning) Scopes(ctx context.Context, consumer string, sources []string, generation int64) (numbers []int64, err error) {
	s.together.Add(1)
	s.most.Store(max(s.most.Load(), int64(len(sources))))
	for _, source := range sources {
		n, err := s.Store.Scope(ctx, consumer, source, generation)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// ofSources returns messages that each have a different source.
func ofSources(first, last int) (all []*semel.Message) {
	for i := first; i < last; i++ {
		all = append(all, &semel.Message{Attributes: semel.Attributes{ID: fmt.Sprint(i), Source: fmt.Sprintf("/shops/%d", i)}})
	}
	return all
}

func TestScopesOfManySources(t *testing.T) {
	t.Run("law_11_a_batch_asks_once_for_all_of_its_new_sources", func(t *testing.T) {
		s := &interning{Store: memstore.New()}
		var effects atomic.Int64
		c, err := consumer.New(s, func(context.Context, *memstore.Tx, *semel.Message) error { effects.Add(1); return nil },
			consumer.Config{Name: "billing", Identity: identity.CloudEvents(), Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		for some := range slices.Chunk(append(ofSources(0, 500), ofSources(0, 100)...), 100) {
			before := s.together.Load()
			if _, err := c.ProcessAll(t.Context(), some); err != nil {
				t.Fatal(err)
			}
			// A batch with the first messages may start before the other messages have arrived.
			if n := s.together.Load() - before; n > 10 {
				t.Fatalf("for 100 new sources the store was asked %d times", n)
			}
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.alone.Load() != 0 || s.most.Load() < 10 || effects.Load() != 500 {
			t.Errorf("asked for one scope %d times, for %d at most, and %d effects", s.alone.Load(), s.most.Load(), effects.Load())
		}
	})
	t.Run("F3_messages_that_are_accepted_together_ask_once_for_their_new_sources", func(t *testing.T) {
		s := &interning{Store: memstore.New()}
		c, err := consumer.New(s, func(context.Context, *memstore.Tx, *semel.Message) error { return nil },
			consumer.Config{Name: "billing", Identity: identity.CloudEvents(), Strategy: consumer.StrategyInbox})
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := s.Begin(t.Context(), store.TxOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Rollback(t.Context())
		if _, err := c.Accept(t.Context(), b.Tx(store.All), ofSources(0, 50)...); err != nil {
			t.Fatal(err)
		}
		if s.alone.Load() != 0 || s.together.Load() != 1 || s.most.Load() != 50 {
			t.Errorf("asked for one scope %d times, %d times for %d at most", s.alone.Load(), s.together.Load(), s.most.Load())
		}
	})
}
