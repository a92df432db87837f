package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// scale is a meter that records its measurements.
type scale struct {
	mutex   sync.Mutex
	batches []measure.Batch
}

func (*scale) Observe(semel.Event) {}

func (s *scale) Measure(b measure.Batch) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.batches = append(s.batches, b)
}

// panicky is a meter that panics.
type panicky struct{ observerFunc }

func (panicky) Measure(measure.Batch) { panic("no") }

func TestAMeterGetsEachBatch(t *testing.T) {
	bubble(t, "K4_with_what_its_parts_took", func(t *testing.T) {
		st := watch(memstore.New())
		st.onBegin = func(context.Context, []store.Mark) error { pass(time.Millisecond); return nil }
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			pass(4 * time.Millisecond)
			return commit(ctx)
		}
		told := &scale{}
		c := config(newListSource(message("1", `{}`)))
		c.Observers = []semel.Observer{observerFunc(func(semel.Event) {}), told}
		if err := mustNew(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { pass(2 * time.Millisecond); return nil }, c).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := measure.Batch{Consumer: "billing", Messages: 1, Marking: time.Millisecond, Handling: 2 * time.Millisecond, Committing: 4 * time.Millisecond}
		if len(told.batches) != 1 || told.batches[0] != want {
			t.Errorf("told %+v, not %+v", told.batches, want)
		}
	})
	bubble(t, "K4_with_how_it_ended", func(t *testing.T) {
		st := watch(memstore.New())
		begun, committed, ran := 0, 0, 0
		st.onBegin = func(context.Context, []store.Mark) error {
			if begun++; begun == 1 {
				return errors.New("the store is down")
			}
			return nil
		}
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if committed++; committed == 1 {
				commit(ctx)
				return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errors.New("the answer is lost")}
			}
			return commit(ctx)
		}
		told := &scale{}
		c := config(newListSource(message("1", `{}`), message("2", `{}`)))
		c.Observers = []semel.Observer{told}
		c.Batch.MaxSize, c.Workers = 1, 1
		err := mustNew(t, st, func(context.Context, *memstore.Tx, *semel.Message) error {
			if ran++; ran == 1 {
				return errors.New("not yet")
			}
			return nil
		}, c).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends := map[measure.End]int{}
		for _, b := range told.batches {
			ends[b.End]++
		}
		for _, end := range measure.Ends() {
			if ends[end] == 0 {
				t.Errorf("no batch is %s: %v", end, ends)
			}
		}
	})
	bubble(t, "trap_T90_one_that_panics_is_logged_once", func(t *testing.T) {
		said := &strings.Builder{}
		c := config(newListSource(message("1", `{}`), message("2", `{}`)))
		c.Observers, c.Logger, c.Batch.MaxSize = []semel.Observer{panicky{observerFunc(func(semel.Event) {})}}, slog.New(slog.NewTextHandler(said, nil)), 1
		if counts := runs(t, memstore.New(), add, c); counts.Applied != 2 || strings.Count(said.String(), "meter 1 of 1") != 1 {
			t.Errorf("%+v: %s", counts, said)
		}
	})
}

func TestTheLoadOfAConsumer(t *testing.T) {
	bubble(t, "K4_it_has_an_age_and_a_place", func(t *testing.T) {
		goOn := make(chan struct{})
		consumer := mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { <-goOn; return nil }, config(newListSource(message("1", `{}`), message("2", `{}`))))
		if l := consumer.Load(); l != (measure.Load{}) {
			t.Errorf("before the run: %+v", l)
		}
		run := start(t, consumer)
		pass(10 * time.Second)
		if l := consumer.Load(); l.Messages != 2 || l.Oldest != 10*time.Second || l.Flying+l.Queued != 2 || l.Bytes == 0 || l.Lanes != 1 {
			t.Errorf("in hand: %+v", l)
		}
		close(goOn)
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if l := consumer.Load(); l != (measure.Load{}) {
			t.Errorf("after the run: %+v", l)
		}
	})
}

func TestTheAgeOfTheLoad(t *testing.T) {
	bubble(t, "K4_it_is_that_of_the_first_that_has_not_ended_and_not_the_run_s", func(t *testing.T) {
		goOn := make(chan struct{})
		src := watchSource(message("1", `{}`))
		src.onFetch = func(context.Context, source.Bound) error { pass(time.Hour); return nil } // no message arrives for an hour
		consumer := mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { <-goOn; return nil }, config(src))
		run := start(t, consumer)
		pass(time.Hour - time.Second)
		if l := consumer.Load(); l.Messages != 0 || l.Oldest != 0 {
			t.Errorf("nothing has come: %+v", l)
		}
		pass(11 * time.Second)
		if l := consumer.Load(); l.Messages != 1 || l.Oldest != 10*time.Second {
			t.Errorf("the message arrived 10 seconds ago: %+v", l)
		}
		close(goOn)
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAlive(t *testing.T) {
	bubble(t, "K8_it_is_while_one_worker_of_two_is_free", func(t *testing.T) {
		goOn := make(chan struct{})
		source := newListSource(message("1", `{}`))
		source.endless = true
		c := config(source)
		c.Workers, c.Batch.MaxSize, c.Timeout = 2, 1, time.Second
		consumer := mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { <-goOn; return nil }, c)
		run := start(t, consumer)
		pass(5 * time.Second)
		if alive, why := consumer.Alive(); !alive || consumer.Load().Stuck != 1 {
			t.Errorf("one sticks: %s, %+v", why, consumer.Load())
		}
		close(goOn)
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
	})
	bubble(t, "K8_it_is_not_when_the_engine_has_stood_still_for_a_minute", func(t *testing.T) {
		goOn := make(chan struct{})
		c := config(newListSource(message("1", `{}`)))
		c.Observers = []semel.Observer{observerFunc(func(e semel.Event) {
			if e.Kind == eventkind.Committed {
				<-goOn
			}
		})}
		consumer := mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { pass(time.Second); return nil }, c)
		run := start(t, consumer)
		pass(time.Minute)
		if alive, why := consumer.Alive(); !alive {
			t.Errorf("reported too early: %s", why)
		}
		pass(2 * time.Second)
		if alive, why := consumer.Alive(); alive || why != "the engine has stood still for 1m1s" {
			t.Errorf("alive %t: %q", alive, why)
		}
		close(goOn)
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if alive, why := consumer.Alive(); !alive {
			t.Errorf("still reported after the engine continued: %s", why)
		}
	})
	bubble(t, "K8_it_is_while_some_worker_works_and_not_when_the_handlers_of_all_go_on", func(t *testing.T) {
		goOn := make(chan struct{})
		source := newListSource(message("1", `{}`), message("2", `{}`))
		source.endless = true
		c := config(source)
		c.Workers, c.Batch.MaxSize, c.Timeout = 1, 1, time.Second
		consumer := mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { <-goOn; return nil }, c)
		run := start(t, consumer)
		synctest.Wait()
		if alive, why := consumer.Alive(); !alive {
			t.Errorf("a handler runs: %s", why)
		}
		pass(5 * time.Second)
		if alive, why := consumer.Alive(); alive || !strings.Contains(why, "all 1 workers go on after their timeouts") {
			t.Errorf("all handlers are stuck: alive %t, %q", alive, why)
		}
		close(goOn)
		pass(5 * time.Second)
		if alive, why := consumer.Alive(); !alive {
			t.Errorf("they have returned: %s", why)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
	})
	bubble(t, "K8_a_store_that_is_down_is_a_pause_and_no_death", func(t *testing.T) {
		st := watch(memstore.New())
		st.onBegin = func(context.Context, []store.Mark) error { return errors.New("down") }
		source := newListSource(message("1", `{}`))
		source.endless = true
		consumer := mustNew(t, st, add, config(source))
		run := start(t, consumer)
		pass(10 * time.Minute)
		if alive, why := consumer.Alive(); !alive {
			t.Errorf("dead: %s", why)
		}
		if ready, _ := consumer.Ready(); ready {
			t.Error("it is ready")
		}
		run.stop()
		_ = run.wait()
	})
}
