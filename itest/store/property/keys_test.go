// Package property generates random histories of messages and checks that effects are in the required order. If a
// history fails, the library rapid searches a shorter history that also fails.
package property

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// step is a message of a key and the results of its handler.
type step struct {
	key    string
	number int
	fails  int  // how often the handler fails before it succeeds
	passed bool // the handler discards the message
}

func (s step) id() string { return fmt.Sprint(s.key, "-", s.number) }

func (s step) message() *semel.Message {
	return &semel.Message{Key: []byte(s.key), Headers: semel.Headers{{Name: "id", Value: []byte(s.id())}}, Body: []byte("{}")}
}

// history is the input of a consumer.
type history struct {
	steps []step // each message occurs once
	// The field runs contains the deliveries of one process after the other, as indexes of steps. Each process except
	// the last is stopped after a certain time.
	runs [][]int
	ends []time.Duration
	// The fields workers, most and hold are settings of the consumer.
	workers, most int
	hold          time.Duration
}

// draw returns a random history in which the first deliveries of each key are in order.
func draw(t *rapid.T) (h history) {
	for s := range rapid.IntRange(1, 3).Draw(t, "keys") {
		for v := range rapid.IntRange(1, 6).Draw(t, "length") {
			h.steps = append(h.steps, step{string(rune('a' + s)), v + 1, rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "fails"), rapid.IntRange(0, 9).Draw(t, "passed") == 9})
		}
	}
	all := make([]int, len(h.steps))
	for i := range all {
		all[i] = i
	}
	all = append(all, rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 0, 6).Draw(t, "copies")...)
	for rest := all; len(rest) > 0; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "deliveries")
		h.runs, rest = append(h.runs, rest[:n]), rest[n:]
		h.ends = append(h.ends, time.Duration(rapid.IntRange(1, 3000).Draw(t, "ends"))*time.Millisecond)
	}
	h.workers, h.most = rapid.IntRange(1, 3).Draw(t, "workers"), rapid.IntRange(1, 5).Draw(t, "most")
	h.hold = time.Duration(rapid.SampledFrom([]int{1, 50, 5000}).Draw(t, "hold")) * time.Millisecond
	return h
}

// runSource is a source that delivers the messages of a run that were not acknowledged before, and then
// nothing.
type runSource struct {
	mutex sync.Mutex
	given []source.Delivery
	open  map[*semel.Message]bool
}

var lane = source.Lane{ID: "a", Epoch: 1}

func (s *runSource) Lanes(o source.LaneObserver) { o.Given(lane) }
func (*runSource) Info() source.Info             { return source.Info{} }

func (s *runSource) Flow(source.Lane, bool)      {}
func (s *runSource) Close(context.Context) error { return nil }

func (s *runSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	s.mutex.Lock()
	n := min(most.Messages, len(s.given))
	all := s.given[:n]
	s.given = s.given[n:]
	s.mutex.Unlock()
	if n == 0 {
		<-ctx.Done()
	}
	return all, nil
}

func (s *runSource) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, one := range all {
		delete(s.open, one.Delivery.Message)
	}
	return nil, nil
}

// runProcesses runs the processes of the history one after the other with the same store, and returns the store.
func (h *history) runProcesses(policy func(*consumer.Config)) (*memstore.Store, error) {
	store, left := memstore.New(), map[string]int{}
	for _, s := range h.steps {
		left[s.id()] = s.fails
	}
	var pending []*semel.Message
	var mutex sync.Mutex
	for n, run := range h.runs {
		for _, i := range run {
			pending = append(pending, h.steps[i].message())
		}
		src := &runSource{open: map[*semel.Message]bool{}}
		for _, m := range pending {
			src.given, src.open[m] = append(src.given, source.Delivery{Message: m, Lane: lane, Before: source.Unknown}), true
		}
		c := consumer.Config{Name: "property", Source: src, Identity: identity.By("header:id"), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Workers: h.workers, MaxInMemoryWait: h.hold, Batch: consumer.BatchLimits{MaxSize: h.most},
			Retry: consumer.RetryPolicy{MaxAttempts: 50, InitialDelay: 20 * time.Millisecond, MaxDelay: time.Minute}}
		ctx, cancel := context.WithTimeout(context.Background(), h.ends[n])
		if n == len(h.runs)-1 {
			c.IdleExit = 10 * time.Minute
			ctx, cancel = context.WithCancel(context.Background())
		}
		policy(&c)
		if err := h.run(ctx, store, c, left, &mutex); err != nil {
			cancel()
			return nil, err
		}
		cancel()
		pending = slices.DeleteFunc(pending, func(m *semel.Message) bool { return !src.open[m] })
	}
	return store, nil
}

func (h *history) run(ctx context.Context, store *memstore.Store, c consumer.Config, left map[string]int, mutex *sync.Mutex) error {
	passed := map[string]bool{}
	for _, s := range h.steps {
		passed[s.id()] = s.passed
	}
	process, err := consumer.New(store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		mutex.Lock()
		defer mutex.Unlock()
		id := m.Identity.ID
		key, number, _ := strings.Cut(id, "-")
		before, err := tx.Get(key)
		if err != nil {
			return err
		}
		if err := tx.Set(key, append(before, number+" "...)); err != nil {
			return err
		}
		if left[id]--; left[id] >= 0 {
			return errors.New("not yet")
		}
		if passed[id] {
			return semel.Discard("it is drawn")
		}
		return nil
	}, c, faults.Plan{Seed: 1})
	if err != nil {
		return err
	}
	return process.Run(ctx)
}

// expectedEffects returns the expected effects of each key, in order.
func (h *history) expectedEffects() map[string]string {
	want := map[string]string{}
	for _, s := range h.steps {
		if want[s.key] += ""; !s.passed {
			want[s.key] += strconv.Itoa(s.number) + " "
		}
	}
	return want
}

// checkHistories checks random histories. Goroutines run in no fixed order, so a history that failed may pass when it
// is repeated. After the first failure, checkHistories therefore tries each history many times, so that the library
// rapid can find a shorter history that fails.
func checkHistories(t *testing.T, policy func(*consumer.Config)) {
	tries := 1
	rapid.Check(t, func(rt *rapid.T) {
		h := draw(rt)
		for range tries {
			if err := h.checkHistory(t, policy); err != nil {
				tries = 50
				rt.Fatal(err)
			}
		}
	})
}

// checkHistory runs the history in virtual time and returns an error if the result is wrong.
func (h *history) checkHistory(t *testing.T, policy func(*consumer.Config)) error {
	var st *memstore.Store
	var err error
	synctest.Test(t, func(*testing.T) { st, err = h.runProcesses(policy) })
	if err != nil {
		return err
	}
	want := h.expectedEffects()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got := string(st.Get(key)); got != want[key] {
			return fmt.Errorf("key %s took effect as %q, and should as %q", key, got, want[key])
		}
	}
	rows, err := st.Rows(context.Background(), store.RowFilter{})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if o := r.State.Outcome(); o == store.Waiting || o == store.Parked {
			return fmt.Errorf("the row of %s is left %s", r.Key.ID, r.State)
		}
	}
	return nil
}

func TestKeysInTheirOrder(t *testing.T) {
	t.Run("C8_law_8_keep_it_through_copies_failures_and_restarts", func(t *testing.T) {
		checkHistories(t, func(c *consumer.Config) { c.Lanes = consumer.LanesKey })
	})
	t.Run("D8_law_8_keep_it_behind_a_receipt", func(t *testing.T) {
		checkHistories(t, func(c *consumer.Config) {
			c.Lanes, c.Strategy, c.AckOnReceipt = consumer.LanesKey, consumer.StrategyInbox, true
		})
	})
}
