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
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// calling is a store whose batches call the function back during their commit.
type calling struct {
	*memstore.Store
	back func(mark store.Mark) // called for each message
	// The field contended is the number of the next commits that fail because of another batch.
	contended atomic.Int32
	cut       chan struct{} // receives when a batch is killed
}

type callingBatch struct {
	store.Batch[*memstore.Tx]
	store *calling
	marks []store.Mark
	begin func(mark int) func()
}

func (s *calling) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	b, v, err := s.Store.Begin(ctx, o, marks)
	return &callingBatch{Batch: b, store: s, marks: marks}, v, err
}

func (*callingBatch) Queued() int { return 0 }

func (b *callingBatch) OnCallback(begin func(mark int) func()) { b.begin = begin }

func (b *callingBatch) Kill() {
	b.Batch.Kill()
	b.store.cut <- struct{}{}
}

func (b *callingBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.store.contended.Add(-1) >= 0 {
		b.Batch.Rollback(ctx)
		return store.Result{Outcome: store.NotCommitted, Class: store.ClassContended, Culprit: store.NoCulprit, Err: errTest}
	}
	for i := range b.marks {
		ended := b.begin(i)
		b.store.back(b.marks[i])
		ended()
	}
	return b.Batch.Commit(ctx, e)
}

// sticks returns a store in which the callback of message m3 waits for release.
func sticks(release chan struct{}) *calling {
	return &calling{Store: memstore.New(), cut: make(chan struct{}, 9), back: func(m store.Mark) {
		if string(m.ID) == "m3" {
			<-release
		}
	}}
}

// stuck is a run of eight workers over a hundred messages, in which the callback of m3 does not return.
type stuck struct {
	t        *testing.T
	release  chan struct{}
	store    *calling
	seen     *witness
	consumer *consumer.Consumer[*memstore.Tx]
	run      *runningConsumer
}

func startStuck(t *testing.T, contended int32) *stuck {
	s := &stuck{t: t, release: make(chan struct{}), seen: &witness{}}
	s.store = sticks(s.release)
	s.store.contended.Store(contended)
	source := newListSource(numbered("m", 100)...)
	source.endless = true
	c := config(source)
	c.Lanes, c.Workers, c.Batch.MaxSize, c.Timeout, c.Observers = consumer.LanesNone, 8, 1, 5*time.Second, []semel.Observer{s.seen}
	s.consumer = mustNew(t, s.store, add, c)
	s.run = start(t, s.consumer)
	return s
}

// ends checks that other messages were applied while m3 was blocked, then unblocks m3 and ends the run.
func (s *stuck) ends() {
	if n := s.consumer.Counts().Applied; n < 50 { // the number of messages that wait behind m3 depends on the hash of their ids
		s.t.Errorf("%d other messages were applied", n)
	}
	close(s.release)
	pass(time.Minute)
	if ready, why := s.consumer.Ready(); !ready || s.consumer.Counts().Applied != 100 {
		s.t.Errorf("afterwards ready %t: %s, %+v", ready, why, s.consumer.Counts())
	}
	s.run.stop()
	if err := s.run.wait(); err != nil {
		s.t.Error(err)
	}
}

func TestACallbackThatSticks(t *testing.T) {
	bubble(t, "C17_has_its_batch_cut_after_its_time_out_while_the_other_workers_go_on", func(t *testing.T) {
		s := startStuck(t, 0)
		pass(5500 * time.Millisecond)
		if len(s.store.cut) != 0 {
			t.Error("the connection was closed before the timeout")
		}
		pass(time.Second)
		synctest.Wait()
		told := s.seen.eventsOf(eventkind.Stuck)
		if len(s.store.cut) != 1 || len(told) != 1 || told[0].Key.ID != "m3" {
			t.Errorf("closed %d connections, with events %+v", len(s.store.cut), told)
		}
		if ready, why := s.consumer.Ready(); ready || !strings.Contains(why, "callback") {
			t.Errorf("ready %t: %s", ready, why)
		}
		s.ends()
	})
	bubble(t, "C17_holds_no_other_worker_up_while_batches_run_one_at_a_time", func(t *testing.T) {
		s := startStuck(t, 1)
		pass(30 * time.Second)
		serial, parallel := len(s.seen.eventsOf(eventkind.Serial)), len(s.seen.eventsOf(eventkind.Parallel))
		if serial != 1 || parallel != 0 || len(s.store.cut) != 1 {
			t.Errorf("serialised %d times, parallel again %d times, cut %d times", serial, parallel, len(s.store.cut))
		}
		s.ends()
	})
	bubble(t, "case_10_a_stop_ends_by_its_deadline_and_calls_it_a_handler", func(t *testing.T) {
		release := make(chan struct{})
		defer synctest.Wait()
		defer close(release)
		source := newListSource(numbered("m", 4)...)
		source.endless = true
		c := config(source)
		c.Batch.MaxSize, c.Drain = 1, 2*time.Second
		run := start(t, mustNew(t, sticks(release), add, c))
		pass(time.Second)
		began := time.Now()
		run.stop()
		err := run.wait()
		if took := time.Since(began); took != 7*time.Second || err == nil || !strings.Contains(err.Error(), "1 handlers ignore their context") || strings.Contains(err.Error(), "a commit did not end") {
			t.Errorf("%v after %v", err, took)
		}
	})
}
