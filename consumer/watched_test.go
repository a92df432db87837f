package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// bubble runs a subtest in virtual time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// watchedStore is a memstore that records the engine's calls and calls functions of a test.
type watchedStore struct {
	*memstore.Store
	// onBegin and onCommit, if set, are called before the memstore is called. onCommit may replace the
	// commit.
	onBegin  func(ctx context.Context, marks []store.Mark) error
	onCommit func(ctx context.Context, commit func(context.Context) store.Result) store.Result
	// onKill, if set, is called when a batch is killed.
	onKill func()

	mutex     sync.Mutex
	open      int
	longest   time.Duration // duration of the longest transaction
	begins    []time.Time
	marks     int
	committed map[string]bool // marks of committed batches
}

func watch(s *memstore.Store) *watchedStore {
	return &watchedStore{Store: s, committed: map[string]bool{}}
}

func (s *watchedStore) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	s.mutex.Lock()
	s.begins = append(s.begins, time.Now())
	s.marks += len(marks)
	s.mutex.Unlock()
	if s.onBegin != nil {
		if err := s.onBegin(ctx, marks); err != nil {
			return nil, nil, err
		}
	}
	b, v, err := s.Store.Begin(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	s.mutex.Lock()
	s.open++
	s.mutex.Unlock()
	return &watchedBatch{Batch: b, store: s, marks: marks, began: time.Now()}, v, nil
}

// watchedBatch is a batch of a watchedStore.
type watchedBatch struct {
	store.Batch[*memstore.Tx]
	store *watchedStore
	marks []store.Mark
	began time.Time
}

func (b *watchedBatch) TxAborted() bool { return b.Batch.(store.TxStatus).TxAborted() }

func (*watchedBatch) AbortCause() error { return nil }

func (b *watchedBatch) ClassifyHandler(_ context.Context, err error) store.Class {
	return (&downStore{b.store}).Classify(err)
}

func (b *watchedBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	commit := func(ctx context.Context) store.Result { return b.Batch.Commit(ctx, e) }
	var result store.Result
	if b.store.onCommit != nil {
		result = b.store.onCommit(ctx, commit)
	} else {
		result = commit(ctx)
	}
	b.end(result.Outcome == store.Committed)
	return result
}

func (b *watchedBatch) Kill() {
	b.Batch.Kill()
	if b.store.onKill != nil {
		b.store.onKill()
	}
}

func (b *watchedBatch) Rollback(ctx context.Context) {
	b.Batch.Rollback(ctx)
	b.end(false)
}

func (b *watchedBatch) end(committed bool) {
	s := b.store
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open--
	s.longest = max(s.longest, time.Since(b.began))
	for _, m := range b.marks {
		s.committed[string(m.ID)] = s.committed[string(m.ID)] || committed
	}
}

// isOpen returns the number of open transactions.
func (s *watchedStore) isOpen() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.open
}

// watchedSource is a listSource that calls functions of a test.
type watchedSource struct {
	*listSource
	onFetch  func(ctx context.Context, most source.Bound) error
	onSettle func(ctx context.Context, s []source.Settlement) ([]int, error)
	onClose  func() error
	onFlow   func(l source.Lane, on bool)
}

func watchSource(messages ...*semel.Message) *watchedSource {
	return &watchedSource{listSource: newListSource(messages...)}
}

func (s *watchedSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if s.onFetch != nil {
		if err := s.onFetch(ctx, most); err != nil {
			return nil, err
		}
	}
	return s.listSource.Fetch(ctx, most)
}

func (s *watchedSource) Settle(ctx context.Context, settlements []source.Settlement) ([]int, error) {
	if s.onSettle != nil {
		if left, err := s.onSettle(ctx, settlements); err != nil || len(left) > 0 {
			return left, err
		}
	}
	return s.listSource.Settle(ctx, settlements)
}

func (s *watchedSource) Flow(l source.Lane, on bool) {
	if s.onFlow != nil {
		s.onFlow(l, on)
	}
	s.listSource.Flow(l, on)
}

func (s *watchedSource) Close(ctx context.Context) error {
	if s.onClose != nil {
		return s.onClose()
	}
	return s.listSource.Close(ctx)
}

// unacked returns the messages that are not acked, and that a broker would therefore deliver again.
func (s *listSource) unacked(all []*semel.Message) []*semel.Message {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var out []*semel.Message
	for i, m := range all {
		if s.settled[fmt.Sprint(i)] == 0 {
			out = append(out, m)
		}
	}
	return out
}

// isSettled returns how often delivery n was acked.
func (s *listSource) isSettled(n int) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.settled[fmt.Sprint(n)]
}

// numbered returns n messages of one lane, with the ids "PREFIX0", "PREFIX1" and so on.
func numbered(prefix string, n int) []*semel.Message {
	var out []*semel.Message
	for i := range n {
		m := message(fmt.Sprint(prefix, i), fmt.Sprintf(`{"n":%d}`, i))
		m.Topic = prefix
		out = append(out, m)
	}
	return out
}

// mustNew calls consumer.New with a valid configuration.
func mustNew[Tx any](t *testing.T, s store.TxStore[Tx], handle func(context.Context, Tx, *semel.Message) error, c consumer.Config, plans ...faults.Plan) *consumer.Consumer[Tx] {
	t.Helper()
	running, err := consumer.New(s, handle, c, firstSeed, faults.Of(plans...))
	if err != nil {
		t.Fatal(err)
	}
	return running
}

// mustNewLeased calls consumer.NewLeased with a valid configuration.
func mustNewLeased[Tx any](t *testing.T, s store.TxStore[Tx], handle func(context.Context, consumer.Call, *semel.Message) error, c consumer.Config, plans ...faults.Plan) *consumer.Consumer[consumer.Call] {
	t.Helper()
	running, err := consumer.NewLeased(s, handle, c, firstSeed, faults.Of(plans...))
	if err != nil {
		t.Fatal(err)
	}
	return running
}

// mustNewKeyed calls consumer.NewKeyed with a valid configuration.
func mustNewKeyed(t *testing.T, keys keystore.Store, p consumer.KeyPolicy, handle func(context.Context, consumer.Call, *semel.Message) error, c consumer.Config, plans ...faults.Plan) *consumer.Consumer[consumer.Call] {
	t.Helper()
	running, err := consumer.NewKeyed(keys, p, handle, c, firstSeed, faults.Of(plans...))
	if err != nil {
		t.Fatal(err)
	}
	return running
}

// addsUp checks that the numbers of the outcomes add up to the number of deliveries.
func addsUp(t *testing.T, c semel.Counts) {
	t.Helper()
	if sum := c.Applied + c.Duplicates + c.Conflicts + c.Parked + c.DeadLettered + c.Discarded + c.Skipped + c.Received + c.Waiting + c.Failed + c.InFlight; sum != c.Deliveries || c.InFlight < 0 {
		t.Errorf("the counts do not add up: %+v", c)
	}
}

// runs creates a consumer with New, runs the consumer to its end, and returns its counts.
func runs[Tx any](t *testing.T, s store.TxStore[Tx], handle func(context.Context, Tx, *semel.Message) error, c consumer.Config, plans ...faults.Plan) semel.Counts {
	t.Helper()
	return ranToItsEnd(t, mustNew(t, s, handle, c, plans...))
}

// runsLeased creates a consumer with NewLeased, runs the consumer to its end, and returns its counts.
func runsLeased[Tx any](t *testing.T, s store.TxStore[Tx], handle func(context.Context, consumer.Call, *semel.Message) error, c consumer.Config, plans ...faults.Plan) semel.Counts {
	t.Helper()
	return ranToItsEnd(t, mustNewLeased(t, s, handle, c, plans...))
}

// runsKeyed creates a consumer with NewKeyed, runs the consumer to its end, and returns its counts.
func runsKeyed(t *testing.T, keys keystore.Store, p consumer.KeyPolicy, handle func(context.Context, consumer.Call, *semel.Message) error, c consumer.Config, plans ...faults.Plan) semel.Counts {
	t.Helper()
	return ranToItsEnd(t, mustNewKeyed(t, keys, p, handle, c, plans...))
}

// ranToItsEnd runs a consumer to its end.
func ranToItsEnd[Tx any](t *testing.T, c *consumer.Consumer[Tx]) semel.Counts {
	t.Helper()
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	addsUp(t, c.Counts())
	return c.Counts()
}

// runningConsumer is a consumer that runs concurrently with the test.
type runningConsumer struct {
	stop  context.CancelFunc
	ended chan error
}

func start[Tx any](t *testing.T, c *consumer.Consumer[Tx]) *runningConsumer {
	ctx, stop := context.WithCancel(t.Context())
	s := &runningConsumer{stop: stop, ended: make(chan error, 1)}
	go func() { s.ended <- c.Run(ctx) }()
	return s
}

// wait returns the result of Run.
func (s *runningConsumer) wait() error {
	err := <-s.ended
	s.stop()
	return err
}

// pass waits until the duration d of virtual time has passed.
func pass(d time.Duration) { <-time.After(d) }

// outcome returns what the store knows about an id of the consumer "billing": a new message, or a duplicate with its
// outcome.
func outcome(t *testing.T, s *memstore.Store, id string) store.Verdict {
	t.Helper()
	scope, err := s.Scope(context.Background(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	b, v, err := s.Begin(context.Background(), store.TxOptions{MarkLock: time.Millisecond}, []store.Mark{{Scope: scope, ID: []byte(id), As: store.Applied}})
	if err != nil {
		t.Fatal(err)
	}
	b.Rollback(context.Background())
	return v[0]
}

// rows returns all inbox rows, with bodies.
func rows(t *testing.T, s *memstore.Store) []store.StoredRow {
	t.Helper()
	all, err := s.Rows(context.Background(), store.RowFilter{Bodies: true})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// row returns the inbox row with the given id. The row must exist.
func row(t *testing.T, s *memstore.Store, id string) store.StoredRow {
	t.Helper()
	for _, r := range rows(t, s) {
		if r.Key.ID == id {
			return r
		}
	}
	t.Fatalf("there is no row of %q", id)
	return store.StoredRow{}
}

// log is the output of a logger. log can be read while the logger writes.
type log struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// witness is an observer that records events.
type witness struct {
	mutex  sync.Mutex
	events []semel.Event
}

func (w *witness) Observe(e semel.Event) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.events = append(w.events, e)
}

func (w *witness) eventsOf(kind semel.EventKind) []semel.Event {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var out []semel.Event
	for _, e := range w.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

var errTest = errors.New("no")
