package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// outages are the ways in which a store can be down, by the operation that fails.
var outages = []string{"scope", "begin", "commit-before"}

// newFailingStore returns a store whose operation op fails while down is set.
func newFailingStore(op string, down *atomic.Bool, calls *atomic.Int64) *memstore.Store {
	return memstore.New(memstore.Fail(func(o string) error {
		if o == "begin" {
			calls.Add(1)
		}
		if o == op && down.Load() {
			return errors.New("no space left on device")
		}
		return nil
	}))
}

func TestAStoreThatIsDown(t *testing.T) {
	bubble(t, "law_13_while_the_store_is_down_nothing_is_settled_or_parked_or_counted_as_an_attempt_and_nothing_spins", func(t *testing.T) {
		for _, op := range outages {
			var down atomic.Bool
			var calls atomic.Int64
			down.Store(true)
			store, seen := newFailingStore(op, &down, &calls), &witness{}
			src := newListSource(append(numbered("a", 6000), numbered("b", 6000)...)...)
			src.endless, src.takes = true, time.Millisecond // so that not all messages are fetched before the first batch
			c := config(src)
			c.MaxUnacked.Messages = 20000 // large enough not to pause fetching
			c.Observers, c.Retry.MaxAttempts, c.Batch.MaxSize = []semel.Observer{seen}, 2, 20
			attempts := atomic.Int64{}
			consumer := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				attempts.Store(max(attempts.Load(), int64(m.Attempt)))
				return add(ctx, tx, m)
			}, c)
			run := start(t, consumer)
			pass(time.Second)
			fetched := consumer.Counts().Deliveries
			pass(time.Minute)
			synctest.Wait()
			ready, why := consumer.Ready()
			if since, why := consumer.StoreDown(); time.Since(since).Round(time.Second) != time.Minute+time.Second || !strings.Contains(why, "no space left") {
				t.Errorf("%s: down since %v, %s", op, since, why)
			}
			if ready || !strings.Contains(why, "no space left") || len(seen.eventsOf(semel.EventNotReady)) == 0 {
				t.Errorf("%s: ready %v (%s), %d events", op, ready, why, len(seen.eventsOf(semel.EventNotReady)))
			}
			counts := consumer.Counts()
			if counts.Applied+counts.Parked+counts.Retried != 0 || counts.InFlight != counts.Deliveries || len(src.settled) != 0 {
				t.Errorf("%s: %+v, %d settled", op, counts, len(src.settled))
			}
			// With random delays up to 5 s (full jitter), there are 24 attempts a minute on average. In addition, two
			// lanes ask the store before the outage is known.
			if n := calls.Load(); n > 60 {
				t.Errorf("%s: the store was asked %d times in a minute", op, n)
			}
			if counts.Deliveries != fetched || fetched == 12000 {
				t.Errorf("%s: fetching continued from %d to %d deliveries", op, fetched, counts.Deliveries)
			}
			down.Store(false)
			pass(time.Minute)
			if since, _ := consumer.StoreDown(); !since.IsZero() {
				t.Errorf("%s: down since %v", op, since)
			}
			synctest.Wait()
			if ready, why := consumer.Ready(); !ready || len(seen.eventsOf(semel.EventReady)) == 0 {
				t.Errorf("%s: still not ready: %s", op, why)
			}
			if counts := consumer.Counts(); counts.Applied != 12000 || counts.Parked != 0 || counts.Retried != 0 || attempts.Load() != 1 || len(src.settled) != 12000 {
				t.Errorf("%s: afterwards %+v, attempt %d, %d settled", op, counts, attempts.Load(), len(src.settled))
			}
			run.stop()
			if err := run.wait(); err != nil {
				t.Error(err)
			}
		}
	})
	bubble(t, "trap_T32_five_minutes_without_a_store_under_load_lose_and_double_nothing", func(t *testing.T) {
		var down atomic.Bool
		var calls atomic.Int64
		store := newFailingStore("commit-before", &down, &calls)
		src := watchSource(numbered("m", 600)...)
		fetched := 0
		src.onFetch = func(ctx context.Context, most source.Bound) error {
			fetched++
			down.Store(fetched == 2)
			return nil
		}
		c := config(src)
		c.Batch.MaxSize, c.Workers, c.Retry.MaxAttempts = 50, 2, 1
		consumer := mustNew(t, store, add, c)
		run := start(t, consumer)
		pass(5 * time.Minute)
		down.Store(false)
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		for i := range 600 {
			if id := fmt.Sprint("m", i); effect(t, store, id) != "1" || src.isSettled(i) != 1 {
				t.Errorf("%s has effect %q and was settled %d times", id, effect(t, store, id), src.isSettled(i))
			}
		}
	})
}

func TestHowOftenAStoreThatIsDownIsAsked(t *testing.T) {
	bubble(t, "trap_T33_a_store_that_is_down_is_asked_less_and_less", func(t *testing.T) {
		st := watch(memstore.New())
		st.onBegin = func(context.Context, []store.Mark) error { return &downError{} }
		src := newListSource(numbered("m", 5)...)
		src.endless = true
		down := &downStore{st}
		run := start(t, mustNew(t, down, add, config(src)))
		pass(5 * time.Minute)
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		n, half := len(st.begins), 0
		for _, at := range st.begins {
			if at.Sub(st.begins[0]) < 5*time.Second {
				half++
			}
		}
		if n < 20 || n > 200 || half > 20 {
			t.Errorf("%d tries in five minutes, %d in the first five seconds", n, half)
		}
	})
	bubble(t, "trap_T33_eight_workers_ask_it_once_a_second_at_most_in_an_outage_of_a_minute", func(t *testing.T) {
		for _, op := range outages {
			for seed := range uint64(5) {
				var down atomic.Bool
				var calls atomic.Int64
				st := memstore.New(memstore.Fail(func(o string) error {
					if !down.Load() {
						return nil
					}
					if o == "scope" || o == "begin" && op != "scope" {
						calls.Add(1)
					}
					if o == op {
						return errors.New("connection refused")
					}
					return nil
				}))
				if op == "scope" {
					down.Store(true)
				}
				src := watchSource(numbered("m", 1000)...)
				src.onFetch = func(context.Context, source.Bound) error { pass(5 * time.Millisecond); return nil }
				src.endless = true
				c := config(src)
				c.Workers, c.Lanes, c.Batch.MaxSize = 8, consumer.LanesNone, 20
				run := start(t, mustNew(t, st, slow(time.Millisecond), c, faults.Plan{Seed: 1 + seed}))
				pass(50 * time.Millisecond)
				down.Store(true)
				pass(time.Minute)
				// Each of the 8 workers may have had a batch in progress when the store went down.
				if n := calls.Load(); n < 10 || n > 60+8 {
					t.Errorf("%s, seed %d: asked %d times in a minute", op, 1+seed, n)
				}
				run.stop()
				if err := run.wait(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	bubble(t, "trap_140_a_database_that_takes_no_commits_is_not_hammered_and_not_ready", func(t *testing.T) {
		var down atomic.Bool
		var calls atomic.Int64
		down.Store(true)
		st := newFailingStore("commit-before", &down, &calls)
		src := newListSource(numbered("m", 5)...)
		src.endless = true
		consumer := mustNew(t, st, add, config(src))
		run := start(t, consumer)
		never := true
		pass(time.Second)
		for range 600 {
			pass(100 * time.Millisecond)
			ready, _ := consumer.Ready()
			never = never && !ready
		}
		run.stop()
		if err := run.wait(); err != nil || !never || len(src.settled) != 0 || calls.Load() > 60 {
			t.Errorf("%v, never ready %v, %d settled, asked %d times", err, never, len(src.settled), calls.Load())
		}
	})
}

func TestNothingPassesWithoutTheStoreOfTheMarkers(t *testing.T) {
	bubble(t, "trap_143_a_store_that_keeps_the_markers_and_cannot_be_reached_lets_nothing_through", func(t *testing.T) {
		var down atomic.Bool
		var calls atomic.Int64
		down.Store(true)
		ran := 0
		source := newListSource(message("1", `{}`))
		source.endless = true
		consumer := mustNew(t, newFailingStore("begin", &down, &calls), func(context.Context, *memstore.Tx, *semel.Message) error { ran++; return nil }, config(source))
		run := start(t, consumer)
		pass(time.Hour)
		run.stop()
		if err := run.wait(); err != nil || ran != 0 || len(source.settled) != 0 {
			t.Errorf("%v, ran %d, settled %v", err, ran, source.settled)
		}
	})
}

type downError struct{}

func (*downError) Error() string { return "down" }

// downStore is a store that classifies a downError as ClassDown.
type downStore struct{ *watchedStore }

func (s *downStore) Classify(err error) store.Class {
	if down := (*downError)(nil); errors.As(err, &down) {
		return store.ClassDown
	}
	return s.watchedStore.Classify(err)
}

func TestAHandlerThatMeetsADeadStore(t *testing.T) {
	bubble(t, "law_13_a_connection_error_in_a_handler_is_nobodys_attempt", func(t *testing.T) {
		// The handler fails once in a batch with other messages, and once in a batch with only its message.
		// TestAMessageThatLooksLikeAnOutage tests a message that always fails.
		store, failures := &downStore{watch(memstore.New())}, 2
		c := config(newListSource(numbered("m", 10)...))
		c.Retry.MaxAttempts = 2
		counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m4" && failures > 0 {
				failures--
				return fmt.Errorf("insert: %w", &downError{})
			}
			return add(ctx, tx, m)
		}, c)
		if counts.Applied != 10 || counts.Parked != 0 || counts.Retried != 0 {
			t.Errorf("%+v", counts)
		}
	})
}

func TestASourceThatFails(t *testing.T) {
	bubble(t, "a_source_that_cannot_be_read_is_asked_again_with_a_growing_pause", func(t *testing.T) {
		src, failing, fetches := watchSource(numbered("m", 5)...), true, 0
		var mutex sync.Mutex
		src.onFetch = func(context.Context, source.Bound) error {
			mutex.Lock()
			defer mutex.Unlock()
			fetches++
			if failing {
				return errors.New("connection refused")
			}
			return nil
		}
		seen := &witness{}
		c := config(src)
		c.Observers = []semel.Observer{seen}
		consumer := mustNew(t, memstore.New(), add, c)
		run := start(t, consumer)
		pass(time.Minute)
		mutex.Lock()
		n := fetches
		failing = false
		mutex.Unlock()
		if ready, why := consumer.Ready(); ready || !strings.Contains(why, "source: connection refused") || n > 60 || n < 5 {
			t.Errorf("ready %v (%s) after %d fetches", ready, why, n)
		}
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if counts := consumer.Counts(); counts.Applied != 5 || len(seen.eventsOf(semel.EventReady)) != 1 || len(seen.eventsOf(semel.EventNotReady)) != n {
			t.Errorf("%+v, %d failures told of %d", counts, len(seen.eventsOf(semel.EventNotReady)), n)
		}
	})
	bubble(t, "what_could_not_be_settled_is_settled_again_and_is_not_processed_again", func(t *testing.T) {
		src, calls, ran := watchSource(numbered("m", 6)...), 0, 0
		src.onSettle = func(_ context.Context, all []source.Settlement) ([]int, error) {
			calls++
			switch calls {
			case 1:
				return nil, errors.New("connection reset")
			case 2, 3:
				var left []int
				for i := range all {
					if i > 0 {
						left = append([]int{i}, left...) // the messages are returned in another order
					}
				}
				_, _ = src.listSource.Settle(context.Background(), all[:1])
				return left, nil
			}
			return nil, nil
		}
		seen := &witness{}
		c := config(src)
		c.Observers = []semel.Observer{seen}
		counts := runs(t, memstore.New(), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			ran++
			return add(ctx, tx, m)
		}, c)
		if counts.Applied != 6 || ran != 6 || calls < 4 {
			t.Errorf("%+v, ran %d, %d calls", counts, ran, calls)
		}
		if down, up := seen.eventsOf(semel.EventNotReady), seen.eventsOf(semel.EventReady); len(down) != 3 || down[0].Reason != "broker" || !strings.Contains(fmt.Sprint(down[0].Err), "connection reset") || len(up) != 1 {
			t.Errorf("not ready %+v, ready %+v", down, up)
		}
		for i := range 6 {
			if src.isSettled(i) != 1 {
				t.Errorf("delivery %d was settled %d times", i, src.isSettled(i))
			}
		}
	})
	bubble(t, "a_source_that_fails_to_close_is_an_error_of_the_run", func(t *testing.T) {
		src := watchSource(message("1", `{}`))
		src.onClose = func() error { return errTest }
		consumer := mustNew(t, memstore.New(), add, config(src))
		if err := consumer.Run(t.Context()); !errors.Is(err, errTest) || !strings.Contains(err.Error(), "closing the source") {
			t.Errorf("Run says %v", err)
		}
		if counts := consumer.Counts(); counts.Applied != 1 {
			t.Errorf("%+v", counts)
		}
	})
}
