package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// flood is an endless source that counts deliveries that are not acked.
type flood struct {
	observer source.LaneObserver
	size     int
	mutex    sync.Mutex
	next     int
	open     int
	bytes    int64
	most     int
	mostSize int64
	largest  int // size of the largest Fetch
}

func (s *flood) Lanes(o source.LaneObserver) { s.observer = o }

func (s *flood) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	s.mutex.Lock()
	if s.open > 5000 { // 5000 is far above every limit: the test has failed and must end
		s.mutex.Unlock()
		<-ctx.Done()
		return nil, nil
	}
	defer s.mutex.Unlock()
	if s.next == 0 {
		for lane := range 4 {
			s.observer.Given(source.Lane{ID: fmt.Sprint(lane), Epoch: 1})
		}
	}
	var out []source.Delivery
	for n, size := 0, int64(0); n < most.Messages && (n == 0 || size < most.Bytes); n++ {
		m := message(fmt.Sprint(s.next), strings.Repeat("x", s.size))
		out = append(out, source.Delivery{Message: m, Lane: source.Lane{ID: fmt.Sprint(s.next % 4), Epoch: 1}, Before: source.Unknown})
		s.next++
		size += int64(s.size)
		s.bytes += int64(s.size)
	}
	s.open += len(out)
	s.largest = max(s.largest, len(out))
	s.most, s.mostSize = max(s.most, s.open), max(s.mostSize, s.bytes)
	return out, nil
}

func (s *flood) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open -= len(all)
	s.bytes -= int64(len(all) * s.size)
	return nil, nil
}

func (*flood) Info() source.Info { return source.Info{} }

func (s *flood) Flow(source.Lane, bool)      {}
func (s *flood) Close(context.Context) error { return nil }

func TestMemoryIsBounded(t *testing.T) {
	for _, lanes := range []consumer.LaneMode{consumer.LanesPartition, consumer.LanesNone} {
		bubble(t, fmt.Sprint("law_11_messages_and_bytes_in_memory_stay_below_their_bounds_when_everything_fails/", lanes), func(t *testing.T) {
			src := &flood{size: 1000}
			c := config(src)
			c.Lanes, c.MaxUnacked, c.Drain = lanes, source.Bound{Messages: 700, Bytes: 1 << 20}, time.Second
			c.Retry.MaxAttempts = 1000000
			consumer := mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return errTest }, c)
			run := start(t, consumer)
			pass(20 * time.Second)
			run.stop()
			if err := run.wait(); err != nil {
				t.Fatal(err)
			}
			if src.most > 700 || src.most < 256 {
				t.Errorf("%d messages were open, more than 700 or suspiciously few", src.most)
			}
			if src.next != src.most {
				t.Errorf("%d were fetched, but nothing was ever settled", src.next)
			}
		})
		bubble(t, fmt.Sprint("trap_T41_bytes_bound_what_waits_for_a_retry/", lanes), func(t *testing.T) {
			src := &flood{size: 10000}
			c := config(src)
			c.Lanes, c.MaxUnacked, c.Drain = lanes, source.Bound{Messages: 100000, Bytes: 1 << 20}, time.Second
			c.Retry.MaxAttempts = 1000000
			run := start(t, mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return errTest }, c))
			pass(20 * time.Second)
			run.stop()
			if err := run.wait(); err != nil {
				t.Fatal(err)
			}
			if one := int64(src.largest * src.size); src.mostSize > 1<<20+one || src.mostSize < 1<<19 {
				t.Errorf("%d bytes were open, more than 1 MiB and one fetch of %d, or suspiciously few", src.mostSize, one)
			}
		})
	}
	bubble(t, "law_11_a_broker_that_never_takes_a_settlement_does_not_fill_memory", func(t *testing.T) {
		src := watchSource(numbered("m", 3000)...)
		src.endless = true
		src.onSettle = func(context.Context, []source.Settlement) ([]int, error) { return nil, errTest }
		c := config(src)
		c.MaxUnacked.Messages, c.Drain = 500, time.Second
		consumer := mustNew(t, memstore.New(), add, c)
		run := start(t, consumer)
		pass(20 * time.Second)
		if counts := consumer.Counts(); counts.Deliveries > 500 || counts.Applied < 400 {
			t.Errorf("%+v", counts)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
	})
	bubble(t, "law_11_every_call_of_store_and_source_has_a_context_that_ends", func(t *testing.T) {
		st, src := watch(memstore.New()), watchSource(message("1", `{}`))
		var mutex sync.Mutex
		calls := map[string]bool{}
		limited := func(what string, ctx context.Context) {
			mutex.Lock()
			defer mutex.Unlock()
			_, has := ctx.Deadline()
			calls[what] = calls[what] || has
		}
		st.onBegin = func(ctx context.Context, _ []store.Mark) error { limited("begin", ctx); return nil }
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			limited("commit", ctx)
			return commit(ctx)
		}
		src.onSettle = func(ctx context.Context, _ []source.Settlement) ([]int, error) {
			limited("settle", ctx)
			return nil, nil
		}
		runs(t, st, add, config(src))
		for _, what := range []string{"begin", "commit", "settle"} {
			if !calls[what] {
				t.Errorf("%s has no deadline", what)
			}
		}
	})
	bubble(t, "law_11_a_fetch_that_waits_ends_with_the_run", func(t *testing.T) {
		src := newListSource()
		src.endless = true
		src.lanes = []string{"a"}
		run := start(t, mustNew(t, memstore.New(), add, config(src)))
		pass(time.Hour)
		began := time.Now()
		run.stop()
		if err := run.wait(); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestProcessForgetsCallsThatEnded(t *testing.T) {
	bubble(t, "law_11_calls_of_Process_that_gave_up_do_not_pile_up_while_the_store_answers_nobody", func(t *testing.T) {
		st := watch(memstore.New())
		st.onBegin = func(context.Context, []store.Mark) error { pass(time.Minute); return nil }
		c := config(nil)
		c.MaxUnacked.Messages = 100
		consumer := mustNew(t, st, add, c)
		for i := range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, _ = consumer.Process(ctx, message(fmt.Sprint(i), `{}`))
			cancel()
		}
		pass(2 * time.Minute)
		synctest.Wait()
		if counts := consumer.Counts(); counts.Deliveries > 200 {
			t.Errorf("%d of 1,000 calls that nobody waits for were kept", counts.Deliveries)
		}
		if err := consumer.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
