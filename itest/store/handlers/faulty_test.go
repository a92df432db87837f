package handlers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
)

// faults returns handlers with one fault each. If ends is true, the result also contains handlers that end their
// transaction.
func faults[Tx any](ends bool) []sample[Tx] {
	all := append(faultyWrites[Tx](), faultyOutputs[Tx]()...)
	all = append(all, faultyCalls[Tx]()...)
	if ends {
		const says = "committed or rolled back the transaction itself"
		all = append(all, sample[Tx]{"ends its transaction", "first delivery", says, func(_ *testing.T, s *fixture[Tx]) {
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				_ = s.add(ctx, tx, m)
				_ = s.End(ctx, tx)
				return nil
			}
		}})
	}
	return all
}

// faultyWrites returns handlers that use their transaction wrongly.
func faultyWrites[Tx any]() []sample[Tx] {
	return []sample[Tx]{
		{"writes outside its transaction", "rollback and second run", "writes outside its transaction", func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(_ context.Context, _ Tx, m *semel.Message) error { s.write(m.ID()); return nil })
		}},
		{"does not use its transaction", "failed transaction", "the effect is elsewhere", func(_ *testing.T, s *fixture[Tx]) {
			s.Handle = func(_ context.Context, _ Tx, m *semel.Message) error { s.write(m.ID()); return nil }
		}},
		{"swallows errors of its transaction", "failed transaction", "return the errors of the transaction", func(_ *testing.T, s *fixture[Tx]) {
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error { _ = s.add(ctx, tx, m); return nil }
		}},
		{"keeps its transaction for the next message", "first delivery", "used a transaction that had ended", func(_ *testing.T, s *fixture[Tx]) {
			var first *Tx
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				if first == nil {
					first = &tx
				}
				return s.add(ctx, *first, m)
			}
		}},
		{"leaves a goroutine", "first delivery", "returned while its goroutine", func(t *testing.T, s *fixture[Tx]) {
			over := t.Context()
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error {
				go func() { <-over.Done(); _ = s.Set(ctx, tx, m.ID(), "late") }()
				return nil
			})
		}},
		{"changes its message", "first delivery", "changed its message", func(_ *testing.T, s *fixture[Tx]) {
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				err := s.add(ctx, tx, m)
				clear(m.Body)
				return err
			}
		}},
		{"skips what it has seen in memory", "rollback and second run", "state in memory", func(_ *testing.T, s *fixture[Tx]) {
			seen := map[string]bool{}
			s.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
				if seen[m.ID()] {
					return nil
				}
				seen[m.ID()] = true
				return s.add(ctx, tx, m)
			}
		}},
		{"sums up in memory", "rollback and second run", "state in memory", func(_ *testing.T, s *fixture[Tx]) {
			runs := 0
			s.runBefore(func(ctx context.Context, tx Tx, _ *semel.Message) error {
				runs++
				return s.Set(ctx, tx, "runs", strconv.Itoa(runs))
			})
		}},
		{"adds without a marker", "duplicate after success", "the handler itself must be idempotent", func(_ *testing.T, s *fixture[Tx]) {
			s.Config.Strategy, s.Config.NaturalReason = consumer.StrategyNatural, "it is believed to be idempotent"
		}},
	}
}

// faultyOutputs returns handlers that write different values in each run, or write no value.
func faultyOutputs[Tx any]() []sample[Tx] {
	var runs atomic.Int64 // shared by all states of this sample
	return []sample[Tx]{
		{"writes a random id", "two undisturbed runs", "random values, the time", func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error {
				return s.Set(ctx, tx, "receipt "+m.ID(), rand.Text())
			})
		}},
		{"writes the time", "two undisturbed runs", "random values, the time", func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error {
				return s.Set(ctx, tx, "paid "+m.ID(), time.Now().Format(time.RFC3339Nano))
			})
		}},
		{"counts in a global variable", "two undisturbed runs", "variables that outlive it", func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error {
				return s.Set(ctx, tx, "number "+m.ID(), fmt.Sprint(runs.Add(1)))
			})
		}},
		{"writes the attempt", "second attempt", "depends on m.Attempt", func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error {
				return s.Set(ctx, tx, "attempt "+m.ID(), fmt.Sprint(m.Attempt))
			})
		}},
		{"keeps the last of all keys", "other order", "delivered in another order", func(_ *testing.T, s *fixture[Tx]) {
			for _, m := range s.Messages {
				m.Key = []byte(m.ID())
			}
			s.runBefore(func(ctx context.Context, tx Tx, m *semel.Message) error { return s.Set(ctx, tx, "last", m.ID()) })
		}},
		{"fails", "first delivery", "no such account", func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(context.Context, Tx, *semel.Message) error { return errors.New("no such account") })
		}},
		{"panics", "first delivery", "the handler panicked: no such account", func(_ *testing.T, s *fixture[Tx]) {
			s.runBefore(func(context.Context, Tx, *semel.Message) error { panic("no such account") })
		}},
		{"gets messages without an id", "first delivery", "give messages that the handler can process", func(_ *testing.T, s *fixture[Tx]) {
			s.Messages = []*semel.Message{{Body: []byte("{}")}, {Body: []byte("{}")}}
		}},
		{"does nothing", "first delivery", "no message changed what Effect returns", func(_ *testing.T, s *fixture[Tx]) {
			s.Handle = func(context.Context, Tx, *semel.Message) error { return nil }
		}},
	}
}

// faultyCalls returns handlers whose calls to a provider charge twice or do not charge.
func faultyCalls[Tx any]() []sample[Tx] {
	return []sample[Tx]{
		{"calls without a key", "first delivery", "without an Idempotency-Key", func(t *testing.T, s *fixture[Tx]) {
			s.addCharge(t, func(*semel.Message) string { return "" })
		}},
		{"calls with a random key", "two undisturbed runs", "different idempotency keys", func(t *testing.T, s *fixture[Tx]) {
			s.addCharge(t, func(*semel.Message) string { return rand.Text() })
		}},
		{"calls with a key for each attempt", "second attempt", "depends on m.Attempt", func(t *testing.T, s *fixture[Tx]) {
			s.addCharge(t, func(m *semel.Message) string { return m.IdempotencyKey(fmt.Sprint("charge ", m.Attempt)) })
		}},
		{"ignores the provider's status", "provider refuses once", "return the errors of calls", func(t *testing.T, s *fixture[Tx]) {
			s.addCharge(t, chargeKey)
			s.runBefore(func(ctx context.Context, _ Tx, m *semel.Message) error {
				_, err := s.status(ctx, http.MethodPost, chargeKey(m), string(m.Body))
				return err
			})
		}},
		{"charges in a replay", "replay without effects", "make no charge", func(t *testing.T, s *fixture[Tx]) {
			s.addCharge(t, chargeKey)
			s.Config.Replay = &semel.Replay{ID: 1}
		}},
		{"trusts keys that the provider forgets", "provider forgets keys", "look for the charge", func(t *testing.T, s *fixture[Tx]) {
			s.addCharge(t, chargeKey)
			s.Provider.Forgets = true
		}},
	}
}
