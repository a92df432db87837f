package handlers

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/semeltest"
)

// sound returns handlers without a fault.
func sound[Tx any]() []sample[Tx] {
	return append(goodWrites[Tx](), goodPolicies[Tx]()...)
}

func goodWrites[Tx any]() []sample[Tx] {
	return []sample[Tx]{
		{Name: "adds"},
		{Name: "inserts by id", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				return s.Set(ctx, tx, m.ID(), string(m.Body))
			}
		}},
		{Name: "reads and writes", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				text, err := s.Get(ctx, tx, "count")
				if err != nil {
					return err
				}
				n, _ := strconv.Atoi(text)
				return s.Set(ctx, tx, "count", strconv.Itoa(n+1))
			}
		}},
		{Name: "discards a message", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(_ context.Context, _ Tx, m *semel.Message) error {
				if m.ID() == "payment-2" {
					return semel.Discard("not ours")
				}
				return nil
			})
		}},
		{Name: "has a handler for each type", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.Handle = consumer.ByType(map[string]func(context.Context, Tx, *semel.Message) error{"semeltest": s.add})
		}},
		{Name: "derives an output id", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error {
				return s.Set(ctx, tx, "receipt "+m.ID(), m.OutputID("receipt", "customer"))
			})
		}},
		{Name: "keeps a result", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error {
				return consumer.KeepResult(ctx, tx, m, []byte("paid"))
			})
		}},
		{Name: "writes an intent", Make: func(t *testing.T, s *fixture[Tx]) {
			intents, err := consumer.NewIntents(s.tables.Store)
			if err != nil {
				t.Fatal(err)
			}
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error {
				return intents.Write(ctx, tx, m, semel.Intent{To: "mail", Purpose: "receipt", Type: "mail", Body: m.Body})
			})
		}},
		{Name: "waits for its goroutine", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(context.Context, Tx, *semel.Message) error {
				var all sync.WaitGroup
				all.Go(func() {})
				all.Wait()
				return nil
			})
		}},
		{Name: "charges with a key", Make: func(t *testing.T, s *fixture[Tx]) { s.addCharge(t, chargeKey) }},
		{Name: "makes no charge in a replay", Make: func(t *testing.T, s *fixture[Tx]) {
			s.addCharge(t, chargeKey)
			s.Config.Replay = &semel.Replay{ID: 1}
			charges := s.Handle
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				if r, is := m.Replay(); is && !r.Effects {
					return s.add(ctx, tx, m)
				}
				return charges(ctx, tx, m)
			}
		}},
		{Name: "looks for the charge", Make: func(t *testing.T, s *fixture[Tx]) {
			s.Provider = semeltest.NewProvider(t)
			s.Provider.Forgets = true
			s.runBefore(func(ctx context.Context, _ Tx, m *semel.Message) error {
				if err := s.call(ctx, http.MethodGet, chargeKey(m), ""); err == nil {
					return nil
				}
				return s.call(ctx, http.MethodPost, chargeKey(m), string(m.Body))
			})
		}},
	}
}

func goodPolicies[Tx any]() []sample[Tx] {
	return []sample[Tx]{
		{Name: "upserts without a marker", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.Config.Strategy, s.Config.NaturalReason = consumer.StrategyNatural, "an upsert"
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				return s.Set(ctx, tx, m.ID(), string(m.Body))
			}
		}},
		{Name: "applies versions in order", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.Config.Version = &consumer.VersionPolicy{By: identity.Stream("body:/order").At("body:/version")}
			s.Messages = nil
			for n := 1; n <= 3; n++ {
				s.Messages = append(s.Messages, semeltest.Message(fmt.Sprint("order-", n), fmt.Sprintf(`{"order":"a","version":%d}`, n)))
			}
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				text, err := s.Get(ctx, tx, "history")
				if err != nil {
					return err
				}
				return s.Set(ctx, tx, "history", text+" "+m.ID())
			}
		}},
		{Name: "has keys and retention", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.Config.Retention.Keep = 24 * time.Hour
			for _, m := range s.Messages {
				m.Key = []byte(m.ID())
			}
		}},
		{Name: "has an inbox and dead letters", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.Config = consumer.Config{
				Name: "billing", Strategy: consumer.StrategyInbox, AckOnReceipt: true,
				Retry: consumer.RetryPolicy{MaxAttempts: 2, OnExhausted: consumer.ActionDeadLetter},
			}
		}},
		{Name: "finds its id in the body", Make: func(_ *testing.T, s *fixture[Tx]) {
			s.Config.Identity = identity.By("body:/id")
			s.Messages = []*semel.Message{{Body: []byte(`{"id":"a","amount":1}`)}, {Body: []byte(`{"id":"b","amount":2}`)}}
		}},
	}
}
