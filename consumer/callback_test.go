package consumer_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

// calling is a store whose batches call back in their commit.
type calling struct {
	*memstore.Store
	back func(mark contract.Mark) // of each message
	// contended is how many of the next commits lose against another batch.
	contended atomic.Int32
	cut       chan struct{} // when a batch is killed
}

type callingBatch struct {
	contract.Batch[*memstore.Tx]
	store *calling
	marks []contract.Mark
	begin func(mark int) func()
}

func (s *calling) Begin(ctx context.Context, o contract.TxOptions, marks []contract.Mark) (contract.Batch[*memstore.Tx], []contract.Verdict, error) {
	b, v, err := s.Store.Begin(ctx, o, marks)
	return &callingBatch{Batch: b, store: s, marks: marks}, v, err
}

func (s *calling) BeginRow(ctx context.Context, o contract.TxOptions, number, revision int64, a contract.Act) (contract.Batch[*memstore.Tx], error) {
	b, err := s.Store.BeginRow(ctx, o, number, revision, a)
	return &callingBatch{Batch: b, store: s, marks: []contract.Mark{{ID: []byte("1")}}}, err
}

func (b *callingBatch) OnCall(begin func(mark int) func()) { b.begin = begin }

func (b *callingBatch) Kill() {
	b.Batch.Kill()
	b.store.cut <- struct{}{}
}

func (b *callingBatch) Commit(ctx context.Context, e contract.Ending) contract.Result {
	if b.store.contended.Add(-1) >= 0 {
		b.Batch.Rollback(ctx)
		return contract.Result{Outcome: contract.NotCommitted, Class: contract.ClassContended, Culprit: contract.NobodyNamed, Err: errTest}
	}
	for i := range b.marks {
		ended := b.begin(i)
		b.store.back(b.marks[i])
		ended()
	}
	return b.Batch.Commit(ctx, e)
}

func TestACallbackThatSticks(t *testing.T) {
	sticks := func(release chan struct{}) *calling {
		return &calling{Store: memstore.New(), cut: make(chan struct{}, 9), back: func(m contract.Mark) {
			if string(m.ID) == "m3" {
				<-release
			}
		}}
	}
	bubble(t, "C17_has_its_batch_cut_after_its_time_out_while_the_other_workers_go_on", func(t *testing.T) {
		release, seen := make(chan struct{}), &witness{}
		store, source := sticks(release), newListSource(numbered("m", 20)...)
		source.endless = true
		c := config(source)
		c.Lanes, c.Workers, c.Batch.Most, c.Timeout, c.Observers = consumer.LanesNone, 8, 1, 5*time.Second, []semel.Observer{seen}
		consumer := mustNew(t, store, add, c)
		run := start(t, consumer)
		pass(5500 * time.Millisecond)
		if len(store.cut) != 0 {
			t.Error("it was cut within its time")
		}
		pass(time.Second)
		synctest.Wait()
		told := seen.of(semel.EventStuck)
		if len(store.cut) != 1 || len(told) != 1 || told[0].Key.ID != "m3" {
			t.Errorf("cut %d times, told of %+v", len(store.cut), told)
		}
		if ready, why := consumer.Ready(); ready || !strings.Contains(why, "callback") {
			t.Errorf("ready %t: %s", ready, why)
		}
		if n := consumer.Counts().Applied; n < 12 {
			t.Errorf("%d were applied beside it", n)
		}
		close(release)
		pass(time.Minute)
		if ready, why := consumer.Ready(); !ready || consumer.Counts().Applied != 20 {
			t.Errorf("afterwards ready %t: %s, %+v", ready, why, consumer.Counts())
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "C17_holds_no_other_worker_up_while_batches_run_one_at_a_time", func(t *testing.T) {
		release, seen := make(chan struct{}), &witness{}
		store, source := sticks(release), newListSource(numbered("m", 20)...)
		source.endless = true
		store.contended.Store(1)
		c := config(source)
		c.Lanes, c.Workers, c.Batch.Most, c.Timeout, c.Observers = consumer.LanesNone, 8, 1, 5*time.Second, []semel.Observer{seen}
		consumer := mustNew(t, store, add, c)
		run := start(t, consumer)
		pass(30 * time.Second)
		if len(seen.of(semel.EventSerial)) != 1 || len(seen.of(semel.EventParallel)) != 0 || len(store.cut) != 1 {
			t.Errorf("serialised %d times, parallel again %d times, cut %d times", len(seen.of(semel.EventSerial)), len(seen.of(semel.EventParallel)), len(store.cut))
		}
		if n := consumer.Counts().Applied; n < 12 {
			t.Errorf("%d were applied beside it", n)
		}
		close(release)
		pass(time.Minute)
		if ready, why := consumer.Ready(); !ready || consumer.Counts().Applied != 20 {
			t.Errorf("afterwards ready %t: %s, %+v", ready, why, consumer.Counts())
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "case_10_a_stop_ends_by_its_deadline_and_calls_it_a_handler", func(t *testing.T) {
		release := make(chan struct{})
		defer synctest.Wait()
		defer close(release)
		source := newListSource(numbered("m", 4)...)
		source.endless = true
		c := config(source)
		c.Batch.Most, c.Drain = 1, 2*time.Second
		run := start(t, mustNew(t, sticks(release), add, c))
		pass(time.Second)
		began := time.Now()
		run.stop()
		err := run.wait()
		if took := time.Since(began); took != 7*time.Second || err == nil || !strings.Contains(err.Error(), "1 handlers ignore their context") || strings.Contains(err.Error(), "a commit did not end") {
			t.Errorf("%v after %v", err, took)
		}
	})
	bubble(t, "C17_of_a_retry_has_its_batch_cut", func(t *testing.T) {
		plain, r := parked(t)
		store := &calling{Store: plain, cut: make(chan struct{}, 1)}
		store.back = func(contract.Mark) { <-store.cut }
		c := config(nil)
		c.Timeout = 5 * time.Second
		began := time.Now()
		if err := mustNew(t, store, add, c).Retry(t.Context(), r, byAnn); err == nil || time.Since(began) != 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
