package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// listSource delivers the given messages, lane by lane, and then ends.
type listSource struct {
	lanes    []string
	pending  []source.Delivery
	endless  bool
	observer source.LaneObserver

	mutex   sync.Mutex
	settled map[string]int // by id of the message
	kinds   map[string]semel.SettleKind
	flows   []bool
	fetches int
	takes   time.Duration // duration of a Fetch that returns deliveries
	refuse  func() error  // error that Settle returns
}

func newListSource(messages ...*semel.Message) *listSource {
	s := &listSource{settled: map[string]int{}, kinds: map[string]semel.SettleKind{}}
	for i, m := range messages {
		lane := m.Topic
		if lane == "" {
			lane = "a"
		}
		if !contains(s.lanes, lane) {
			s.lanes = append(s.lanes, lane)
		}
		s.pending = append(s.pending, source.Delivery{Message: m, Lane: source.Lane{ID: lane, Epoch: 1}, Before: source.Unknown, Handle: i})
	}
	return s
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func (s *listSource) Lanes(o source.LaneObserver) { s.observer = o }

func (s *listSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	s.mutex.Lock()
	s.fetches++
	first := s.fetches == 1
	s.mutex.Unlock()
	if first {
		for _, l := range s.lanes {
			s.observer.Given(source.Lane{ID: l, Epoch: 1})
		}
	}
	n := min(most.Messages, len(s.pending))
	if n > 0 && s.takes > 0 {
		pass(s.takes)
	}
	taken := s.pending[:n]
	s.pending = s.pending[n:]
	if n == 0 && s.endless {
		<-ctx.Done()
		return nil, nil
	}
	if len(s.pending) == 0 && !s.endless {
		return taken, source.ErrEnd
	}
	return taken, nil
}

func (s *listSource) Settle(_ context.Context, settlements []source.Settlement) ([]int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.refuse != nil {
		if err := s.refuse(); err != nil {
			return nil, err
		}
	}
	for _, x := range settlements {
		s.settled[fmt.Sprint(x.Delivery.Handle)]++
		s.kinds[fmt.Sprint(x.Delivery.Handle)] = x.Kind
	}
	return nil, nil
}

func (*listSource) Info() source.Info { return source.Info{} }

func (s *listSource) Flow(_ source.Lane, on bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.flows = append(s.flows, on)
}

func (s *listSource) Close(context.Context) error { return nil }

func message(id, body string) *semel.Message {
	return &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte(id)}}, Body: []byte(body), Origin: semel.Origin{Partition: -1, Offset: -1}}
}

// firstSeed makes the random delays of a test the same in each run.
var firstSeed = faults.Plan{Seed: 1}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func config(src source.Source) consumer.Config {
	return consumer.Config{Name: "billing", Source: src, Identity: identity.By("header:id"), Logger: quiet()}
}

// add is the handler of most tests: it adds 1 to the value of the message's id.
func add(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	return tx.Add("effect "+m.Identity.ID, 1)
}

func effect(t *testing.T, s *memstore.Store, id string) string {
	t.Helper()
	return string(s.Get("effect " + id))
}

func consume(t *testing.T, s *memstore.Store, handle func(context.Context, *memstore.Tx, *semel.Message) error, c consumer.Config) (semel.Counts, error) {
	t.Helper()
	running, err := consumer.New(s, handle, c, firstSeed)
	if err != nil {
		t.Fatal(err)
	}
	err = running.Run(context.Background())
	counts := running.Counts()
	sum := counts.Applied + counts.Duplicates + counts.Conflicts + counts.Parked + counts.DeadLettered + counts.Discarded + counts.Skipped + counts.Received + counts.Waiting + counts.Failed + counts.InFlight
	if sum != counts.Deliveries || counts.InFlight < 0 {
		t.Errorf("the counts do not add up: %+v", counts)
	}
	return counts, err
}

func TestCopiesHaveOneEffect(t *testing.T) {
	t.Run("trap_6_copies_inside_one_fetch_have_one_effect", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, source := memstore.New(), newListSource(message("1", `{}`), message("1", `{}`), message("2", `{}`), message("1", `{}`))
			counts, err := consume(t, store, add, config(source))
			if err != nil || counts.Applied != 2 || counts.Duplicates != 2 {
				t.Errorf("%+v, %v", counts, err)
			}
			if effect(t, store, "1") != "1" || len(source.settled) != 4 {
				t.Errorf("effect %s, settled %v", effect(t, store, "1"), source.settled)
			}
		})
	})
	t.Run("trap_1_a_redelivery_after_a_lost_ack_runs_no_handler", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			if _, err := consume(t, store, add, config(newListSource(message("1", `{}`)))); err != nil {
				t.Fatal(err)
			}
			ran := 0
			counts, err := consume(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error { ran++; return nil }, config(newListSource(message("1", `{}`))))
			if err != nil || counts.Duplicates != 1 || ran != 0 {
				t.Errorf("%+v, %v, ran %d", counts, err, ran)
			}
		})
	})
}

func TestResultsOfHandlers(t *testing.T) {
	failing := map[string]func() error{
		"retry":     func() error { return errors.New("no") },
		"permanent": func() error { return semel.Permanent(errors.New("no")) },
		"park":      func() error { return semel.Park("look at it") },
		"discard":   func() error { return semel.Discard("not ours") },
		"duplicate": func() error { return semel.Duplicate(errors.New("unique")) },
		"unmet":     func() error { return semel.PreconditionFailed("status") },
		"long":      func() error { return semel.RetryAfter(errors.New("no"), time.Hour) },
		"panic":     func() error { panic("no") },
		"goexit":    func() error { runtime.Goexit(); return nil },
	}
	want := map[string]string{
		"retry": "attempts exhausted", "permanent": "permanent failure", "park": "look at it", "unmet": "condition unmet", "long": "",
		"panic": "attempts exhausted", "goexit": "attempts exhausted", "discard": "not ours",
	}
	t.Run("trap_133_panics_and_goexit_are_failures_of_their_message_alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New()
			var messages []*semel.Message
			for name := range failing {
				messages = append(messages, message("ok before "+name, `{}`), message(name, `{}`), message("ok after "+name, `{}`))
			}
			source := newListSource(messages...)
			counts, err := consume(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				if err := add(ctx, tx, m); err != nil {
					return err
				}
				if f := failing[m.Identity.ID]; f != nil {
					return f()
				}
				return nil
			}, config(source))
			if err != nil {
				t.Fatal(err)
			}
			if counts.Applied != 18 || counts.Parked != 6 || counts.Waiting != 1 || counts.Discarded != 1 || counts.Duplicates != 1 {
				t.Errorf("%+v", counts)
			}
			for name := range failing {
				if e := effect(t, st, name); e != "" {
					t.Errorf("%s left the effect %s", name, e)
				}
				if effect(t, st, "ok after "+name) != "1" {
					t.Errorf("the neighbour of %s has effect %s", name, effect(t, st, "ok after "+name))
				}
			}
			rows, err := st.Rows(context.Background(), store.RowFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if string(r.Reason) != want[r.Key.ID] {
					t.Errorf("row of %s has reason %q, want %q", r.Key.ID, r.Reason, want[r.Key.ID])
				}
				if r.Key.ID == "panic" && (r.Attempts != 10 || !strings.Contains(r.LastError, "panicked: no")) {
					t.Errorf("%d attempts, error %q", r.Attempts, r.LastError)
				}
			}
			if len(rows) != 8 || len(source.settled) != len(messages) {
				t.Errorf("%d rows, %d settled", len(rows), len(source.settled))
			}
		})
	})
}

func TestAHandlerThatIgnoresItsContextIsCutOff(t *testing.T) {
	t.Run("trap_134_a_handler_that_ignores_cancellation_loses_its_connection_and_nothing_else", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			c := config(newListSource(message("slow", `{}`), message("2", `{}`)))
			c.Timeout, c.Retry.MaxAttempts = time.Second, 1
			var running *consumer.Consumer[*memstore.Tx]
			ready := true
			running, err := consumer.New(store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				if m.Identity.ID == "slow" {
					<-time.After(time.Minute)
					ready, _ = running.Ready()
				}
				return add(ctx, tx, m)
			}, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := running.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if counts := running.Counts(); counts.Parked != 1 || counts.Applied != 1 || ready || effect(t, store, "slow") != "" {
				t.Errorf("%+v, ready %v, effect %q", counts, ready, effect(t, store, "slow"))
			}
			if ready, why := running.Ready(); !ready {
				t.Errorf("still not ready: %s", why)
			}
		})
	})
}
