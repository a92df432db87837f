package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/rebuild"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// log has the messages of a producer. Several readers can read a log.
type log struct {
	mutex    sync.Mutex
	all      []*semel.Message
	arrivals chan struct{}
}

func (l *log) send(n int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for range n {
		id := fmt.Sprint("m", len(l.all))
		l.all = append(l.all, &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte(id)}}, Body: []byte("{}"), Origin: semel.Origin{Partition: -1, Offset: -1}})
	}
	close(l.arrivals)
	l.arrivals = make(chan struct{})
}

// reader is a source that reads a log from an offset. reader knows the offset up to which all messages are
// acked.
type reader struct {
	log      *log
	observer source.LaneObserver
	assigned bool
	at       int

	mutex   sync.Mutex
	settled map[int]bool
	done    int
}

func (l *log) reader(from int) *reader {
	return &reader{log: l, at: from, done: from, settled: map[int]bool{}}
}

func (r *reader) Lanes(o source.LaneObserver) { r.observer = o }
func (*reader) Info() source.Info             { return source.Info{} }

func (r *reader) Flow(source.Lane, bool)      {}
func (r *reader) Close(context.Context) error { return nil }
func (r *reader) lane() source.Lane           { return source.Lane{ID: "a", Epoch: 1} }
func (r *reader) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, s := range all {
		r.settled[s.Delivery.Handle.(int)] = true
	}
	for r.settled[r.done] {
		r.done++
	}
	return nil, nil
}

func (r *reader) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if !r.assigned {
		r.assigned = true
		r.observer.Given(r.lane())
	}
	for {
		r.log.mutex.Lock()
		all, more := r.log.all, r.log.arrivals
		r.log.mutex.Unlock()
		var out []source.Delivery
		for ; r.at < len(all) && len(out) < most.Messages; r.at++ {
			m := *all[r.at]
			out = append(out, source.Delivery{Message: &m, Lane: r.lane(), Before: source.Unknown, Handle: r.at})
		}
		if len(out) > 0 {
			return out, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (r *reader) position() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.done
}

// world is a test environment with a running consumer and a rebuild of this consumer.
type world struct {
	t     *testing.T
	store *memstore.Store
	log   *log

	mutex   sync.Mutex
	live    *reader // the live reader continues at the position of the previous live reader
	builder *reader
	fail    func(*semel.Message) error
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: memstore.New(), log: &log{arrivals: make(chan struct{})}}
	w.live, w.builder = w.log.reader(0), w.log.reader(0)
	ctx, stop := context.WithCancel(t.Context())
	w.stop = func() { stop(); w.running.Wait() }
	w.running.Go(func() {
		if err := consumer.InGenerations(ctx, w.store, "billing", func(ctx context.Context, g consumer.Generation) error {
			w.mutex.Lock()
			w.live = w.log.reader(w.live.position())
			source := w.live
			w.mutex.Unlock()
			return w.run(ctx, g, source)
		}); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) run(ctx context.Context, g consumer.Generation, src source.Source) error {
	c, err := consumer.New(w.store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		if w.fail != nil && g.Building {
			if err := w.fail(m); err != nil {
				return err
			}
		}
		return tx.Add(fmt.Sprintf("%d %s", g.Number, m.Identity.ID), 1)
	}, consumer.Config{Name: "billing", Source: src, Identity: identity.By("header:id"), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Generation: &g})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

func (w *world) build() {
	ctx, stop := context.WithCancel(w.t.Context())
	before := w.stop
	w.stop = func() { stop(); before() }
	if _, err := w.store.OpenGeneration(w.t.Context(), "billing", store.Act{Verb: "rebuild", Who: "ana", Why: "x"}); err != nil {
		w.t.Fatal(err)
	}
	w.running.Go(func() {
		g := consumer.Generation{Number: 1, Building: true}
		if _, err := g.Rebuild(ctx, w.store, "billing", func(ctx context.Context, g consumer.Generation) error { return w.run(ctx, g, w.builder) }); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) Ends(context.Context) (map[string]int64, error) {
	w.log.mutex.Lock()
	defer w.log.mutex.Unlock()
	return map[string]int64{"a": int64(len(w.log.all))}, nil
}

func (w *world) Done(context.Context) (map[string]int64, error) {
	return map[string]int64{"a": int64(w.builder.position())}, nil
}

var errLost = errors.New("the connection broke")

// lossyStore is a store that loses the response to a switch. After losing the response, the store can be
// down.
type lossyStore struct {
	*memstore.Store
	commits, stays, down bool
}

func (s *lossyStore) SwitchGeneration(ctx context.Context, consumer string, from, to int64, a store.Act) error {
	if s.commits {
		if err := s.Store.SwitchGeneration(ctx, consumer, from, to, a); err != nil {
			return err
		}
	}
	s.down = s.stays
	return errLost
}

func (s *lossyStore) Generations(ctx context.Context, consumer string) ([]admin.StoredGeneration, error) {
	if s.down {
		return nil, errLost
	}
	return s.Store.Generations(ctx, consumer)
}

// unfinishedStore is a store with a rebuild that has unfinished rows.
type unfinishedStore struct {
	*memstore.Store
	pending store.Pending
}

func (s *unfinishedStore) Pending(_ context.Context, consumer string) (store.Pending, error) {
	if consumer != admin.GenerationName("billing", 1) {
		return store.Pending{}, nil
	}
	return s.pending, nil
}

func (w *world) newSwitch() *rebuild.Switch {
	return &rebuild.Switch{Store: w.store, Consumer: "billing", To: 1, Far: w, CatchUp: time.Minute, Fence: 30 * time.Second,
		Act: store.Act{Verb: "switch", Who: "ana", Why: "x"}}
}

// wantOnce checks that a generation has applied each of the first n messages once, and no other message.
func (w *world) wantOnce(generation, n int) {
	w.t.Helper()
	for i := range len(w.log.all) {
		want := map[bool]string{true: "1", false: ""}[i < n]
		if got := string(w.store.Get(fmt.Sprintf("%d m%d", generation, i))); got != want {
			w.t.Errorf("m%d took effect %q times in generation %d, want %q", i, got, generation, want)
		}
	}
}
