package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// crash runs a consumer until its process dies at the n-th time that the process passes point. From then on
// the process can reach neither store nor source. crash reports whether the process died, and returns the
// messages that are not acked.
func crash(t *testing.T, store *memstore.Store, handle func(context.Context, *memstore.Tx, *semel.Message) error, dead *atomic.Bool, messages []*semel.Message, point faults.Point, n int) (bool, []*semel.Message) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	source := newListSource(messages...)
	source.refuse = func() error {
		if dead.Load() {
			return errors.New("the process is dead")
		}
		return nil
	}
	c := config(source)
	c.Batch.MaxSize, c.Drain = 5, time.Second
	passed := 0
	var mutex sync.Mutex
	plan := faults.Plan{At: func(p faults.Point, _ int) {
		mutex.Lock()
		defer mutex.Unlock()
		if p == point {
			passed++
		}
		if passed >= n && !dead.Load() {
			dead.Store(true)
			cancel()
		}
	}}
	consumer := mustNew(t, store, handle, c, plan)
	if err := consumer.Run(ctx); err != nil {
		t.Fatal(err)
	}
	died := dead.Load()
	dead.Store(false)
	return died, source.unacked(messages)
}

func TestMarkerAndEffectAreOneCommit(t *testing.T) {
	bubble(t, "law_1_wherever_the_process_dies_a_marker_stands_exactly_where_its_effect_does", func(t *testing.T) {
		deaths := 0
		for _, point := range faults.Points() {
			for n := 1; n <= 5; n++ {
				var dead atomic.Bool
				st := memstore.New(memstore.Fail(func(string) error {
					if dead.Load() {
						return errors.New("the process is dead")
					}
					return nil
				}))
				messages := numbered("m", 20)
				died, left := crash(t, st, add, &dead, messages, point, n)
				if died {
					deaths++
				}
				for _, m := range messages {
					id := string(m.Headers[0].Value)
					if marked, done := outcome(t, st, id).Already(store.Applied), effect(t, st, id) == "1"; marked != done {
						t.Errorf("%s %d: marker of %s %v, effect %v", point, n, id, marked, done)
					}
				}
				if len(left) > 0 {
					runs(t, st, add, config(newListSource(left...)))
				}
				for _, m := range messages {
					if id := string(m.Headers[0].Value); effect(t, st, id) != "1" {
						t.Errorf("%s %d: %s has effect %q after the restart", point, n, id, effect(t, st, id))
					}
				}
			}
		}
		// The number of processes that die depends on the batches: of 40 runs, usually 23 to 25, and 19 on a busy
		// machine.
		if deaths < 2*len(faults.Points()) {
			t.Errorf("the process died only %d times", deaths)
		}
	})
}

func TestSettleFollowsTheCommit(t *testing.T) {
	bubble(t, "law_2_nothing_is_settled_before_the_commit_of_its_batch_has_returned", func(t *testing.T) {
		st := watch(memstore.New())
		var committing atomic.Int32
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			committing.Add(1)
			defer committing.Add(-1)
			result := commit(ctx)
			pass(time.Second) // the reply of the commit is slow
			return result
		}
		src := watchSource(numbered("m", 50)...)
		src.onSettle = func(_ context.Context, all []source.Settlement) ([]int, error) {
			st.mutex.Lock()
			defer st.mutex.Unlock()
			for _, s := range all {
				if id := string(s.Delivery.Message.Headers[0].Value); !st.committed[id] {
					t.Errorf("%s is settled before its commit", id)
				}
			}
			return nil, nil
		}
		c := config(src)
		c.Batch.MaxSize = 5
		runs(t, st, add, c)
		if len(src.settled) != 50 {
			t.Errorf("%d settled, want 50", len(src.settled))
		}
	})
	bubble(t, "law_2_the_broker_is_not_called_by_the_goroutine_that_holds_a_transaction", func(t *testing.T) {
		// A single worker processes one batch at a time, so it has at most one open transaction.
		st := watch(memstore.New())
		src := watchSource(numbered("m", 50)...)
		calls := 0
		src.onSettle = func(context.Context, []source.Settlement) ([]int, error) {
			calls++
			if n := st.isOpen(); n != 0 {
				t.Errorf("the broker was called while %d transactions were open", n)
			}
			return nil, nil
		}
		c := config(src)
		c.Workers = 1
		runs(t, st, add, c)
		if calls == 0 {
			t.Error("nothing was settled")
		}
	})
	bubble(t, "trap_T27_a_broker_that_hangs_for_a_minute_holds_no_transaction_open", func(t *testing.T) {
		st := watch(memstore.New())
		src := watchSource(numbered("m", 50)...)
		src.onSettle = func(context.Context, []source.Settlement) ([]int, error) {
			pass(time.Minute)
			return nil, nil
		}
		c := config(src)
		c.Batch.MaxSize, c.Workers = 5, 1
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := mustNew(t, st, add, c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if st.longest != 0 || time.Since(began) < time.Minute || effect(t, st.Store, "m49") != "1" {
			t.Errorf("a transaction was open for %v; the run took %v", st.longest, time.Since(began))
		}
	})
}

func TestAFailedAttemptLeavesNothing(t *testing.T) {
	bubble(t, "law_3_what_a_failed_attempt_wrote_is_gone_and_each_attempt_has_a_transaction_of_its_own", func(t *testing.T) {
		st, attempts := memstore.New(), 0
		seen := map[*memstore.Tx]bool{}
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			attempts++
			seen[tx] = true
			if m.Attempt != attempts {
				t.Errorf("attempt %d is called %d", attempts, m.Attempt)
			}
			if err := tx.Add("effect 1", 100); err != nil {
				return err
			}
			if attempts < 4 {
				return errors.New("not SQL's fault")
			}
			return nil
		}, config(newListSource(message("1", `{}`))))
		if effect(t, st, "1") != "100" || counts.Applied != 1 || counts.Retried != 3 || len(seen) != 4 {
			t.Errorf("effect %s, %+v, %d transactions", effect(t, st, "1"), counts, len(seen))
		}
	})
	bubble(t, "law_4_while_a_failed_message_waits_another_process_may_run_it", func(t *testing.T) {
		st := memstore.New()
		first := config(newListSource(message("1", `{}`)))
		first.Retry.InitialDelay, first.MaxInMemoryWait = 10*time.Second, 10*time.Second
		ran := 0
		waiting := mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			ran++
			return semel.RetryAfter(errTest, 10*time.Second)
		}, first)
		run := start(t, waiting)
		pass(time.Second)
		if counts := runs(t, st, add, config(newListSource(message("1", `{}`)))); counts.Applied != 1 {
			t.Errorf("the other process: %+v", counts)
		}
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if counts := waiting.Counts(); counts.Duplicates != 1 || ran != 1 || effect(t, st, "1") != "1" {
			t.Errorf("the first process: %+v, ran %d, effect %s", counts, ran, effect(t, st, "1"))
		}
	})
	bubble(t, "trap_T14_a_message_whose_attempt_failed_and_whose_process_ended_runs_again", func(t *testing.T) {
		st := memstore.New()
		c := config(newListSource(message("1", `{}`)))
		c.Retry.InitialDelay = 10 * time.Second
		consumer := mustNew(t, st, func(context.Context, *memstore.Tx, *semel.Message) error {
			return semel.RetryAfter(errTest, 10*time.Second)
		}, c)
		run := start(t, consumer)
		pass(time.Second)
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if o := outcome(t, st, "1"); o.Kind != store.Fresh {
			t.Errorf("the failed attempt left the verdict %s", o)
		}
		if counts := runs(t, st, add, config(newListSource(message("1", `{}`)))); counts.Applied != 1 {
			t.Errorf("%+v", counts)
		}
	})
}

// failingHandlers contains, by the id of the message, handlers that fail, each in another way.
var failingHandlers = map[string]func(tx *memstore.Tx) error{
	"poison":    func(*memstore.Tx) error { return errTest },
	"permanent": func(*memstore.Tx) error { return semel.Permanent(errTest) },
	"panic":     func(*memstore.Tx) error { panic("no") },
	"sql":       func(tx *memstore.Tx) error { return tx.Add("word", 1) },
	"copy":      func(*memstore.Tx) error { return nil },
	"conflict":  func(*memstore.Tx) error { return nil },
}

func TestOneBadMessageHarmsNoNeighbours(t *testing.T) {
	bubble(t, "law_7_a_bad_message_at_any_place_of_a_batch_costs_its_neighbours_neither_effect_nor_attempt", func(t *testing.T) {
		for kind, fails := range failingHandlers {
			for place := range 6 {
				store := memstore.New()
				prepare(t, store)
				messages := numbered("m", 6)
				messages[place].Headers[0].Value, messages[place].Body = []byte(kind), []byte(`{}`)
				c := config(newListSource(messages...))
				c.Retry.MaxAttempts = 2
				attempts := map[string]int{}
				counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
					attempts[m.Identity.ID] = max(attempts[m.Identity.ID], m.Attempt)
					if err := add(ctx, tx, m); err != nil || m.Identity.ID != kind {
						return err
					}
					return fails(tx)
				}, c)
				if counts.Applied != 5 {
					t.Errorf("%s at %d: %+v", kind, place, counts)
				}
				for i := range messages {
					id := fmt.Sprint("m", i)
					if i != place && (effect(t, store, id) != "1" || attempts[id] != 1) {
						t.Errorf("%s at %d: its neighbour %s has effect %q in attempt %d", kind, place, id, effect(t, store, id), attempts[id])
					}
				}
			}
		}
	})
}

// prepare applies the messages "copy" and "conflict" and writes a value that is not a number.
func prepare(t *testing.T, store *memstore.Store) {
	t.Helper()
	copied := message("copy", `{}`)
	runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		return tx.Set("word", []byte("word"))
	}, config(newListSource(copied, message("conflict", `{"other":1}`))))
}

func TestOrderWithinALane(t *testing.T) {
	bubble(t, "law_8_a_lane_keeps_its_order_through_retries_and_other_lanes_go_on", func(t *testing.T) {
		store := memstore.New()
		var mutex sync.Mutex
		var order []string
		failures := map[string]int{"a1": 2, "a4": 1, "b3": 3}
		source := newListSource(append(numbered("a", 8), numbered("b", 8)...)...)
		c := config(source)
		c.Workers, c.Batch.MaxSize = 2, 3
		began := time.Now()
		times := map[string]time.Duration{}
		counts := runs(t, watch(store), func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			mutex.Lock()
			defer mutex.Unlock()
			id := m.Identity.ID
			if failures[id] > 0 {
				failures[id]--
				return semel.RetryAfter(errTest, 5*time.Second)
			}
			order = append(order, id)
			times[id] = time.Since(began)
			return add(ctx, tx, m)
		}, c)
		if counts.Applied != 16 || counts.Retried != 6 {
			t.Errorf("%+v", counts)
		}
		last := map[string]string{}
		for _, id := range order {
			if effect(t, store, id) != "1" {
				t.Errorf("%s has effect %s", id, effect(t, store, id))
			}
			if last[id[:1]] > id {
				t.Errorf("%s runs after %s", id, last[id[:1]])
			}
			last[id[:1]] = id
		}
		if times["b2"] >= 5*time.Second || times["a7"] < 15*time.Second {
			t.Errorf("b2 ran after %v although its lane was free, a7 after %v although its lane waited", times["b2"], times["a7"])
		}
	})
}

func TestADuplicateIsASuccess(t *testing.T) {
	// A run logs its start and its end at level INFO.
	bubble(t, "law_9_a_duplicate_is_settled_and_counted_and_logged_at_debug_and_nothing_else", func(t *testing.T) {
		store := memstore.New()
		runs(t, store, add, config(newListSource(message("1", `{}`))))
		text, seen, ran := &log{}, &witness{}, 0
		source := newListSource(message("1", `{}`))
		c := config(source)
		c.Logger, c.Observers = text.logger(), []semel.Observer{seen}
		counts := runs(t, store, func(context.Context, *memstore.Tx, *semel.Message) error { ran++; return nil }, c)
		if counts.Duplicates != 1 || counts.Deliveries != 1 || counts.Retried != 0 || ran != 0 || source.settled["0"] != 1 || source.kinds["0"] != semel.Ack {
			t.Errorf("%+v, ran %d, settled %v as %v", counts, ran, source.settled, source.kinds)
		}
		events := seen.eventsOf(eventkind.Duplicate)
		if len(events) != 1 || events[0].Key.ID != "1" || events[0].Err != nil {
			t.Errorf("events %+v", seen.events)
		}
		if !strings.Contains(text.String(), `level=DEBUG msg=duplicate `) || strings.Count(text.String(), "level=INFO") != 2 || strings.Contains(text.String(), "level=WARN") || strings.Contains(text.String(), "level=ERROR") {
			t.Errorf("the log says %s", text)
		}
	})
}

func TestOtherContentUnderOneIdentityIsAConflict(t *testing.T) {
	bubble(t, "law_10_the_second_content_of_an_identity_never_takes_effect_and_is_no_duplicate", func(t *testing.T) {
		st := memstore.New()
		counts := runs(t, st, add, config(newListSource(message("1", `{"n":1}`), message("1", `{"n":2}`), message("1", `{"n": 1.0}`), message("1", `{"n":2}`))))
		if counts.Applied != 1 || counts.Conflicts != 1 || counts.Duplicates != 2 || effect(t, st, "1") != "1" {
			t.Errorf("%+v, effect %s", counts, effect(t, st, "1"))
		}
		r := row(t, st, "1")
		if !r.Conflict || r.State != store.StateParked || r.Reason != semel.ReasonConflict || r.Repeated != 1 || string(r.Message.Body) != `{"n":2}` {
			t.Errorf("%+v, body %s", r, r.Message.Body)
		}
	})
	bubble(t, "law_10_without_a_fingerprint_it_is_a_duplicate", func(t *testing.T) {
		st := memstore.New()
		c := config(newListSource(message("1", `{"n":1}`), message("1", `{"n":2}`)))
		c.Fingerprint = identity.FingerprintNone()
		if counts := runs(t, st, add, c); counts.Applied != 1 || counts.Duplicates != 1 {
			t.Errorf("%+v", counts)
		}
	})
}
