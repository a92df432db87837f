package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// world is a test environment with a store in memory and the text of the consumer's source file.
type world struct {
	t     *testing.T
	store *memstore.Store
	text  string
	// storeLost means that the process can no longer reach the store.
	storeLost atomic.Bool
	// beforeEffect is called before each effect; may be nil.
	beforeEffect func(*semel.Message) error
}

var errDead = errors.New("the process is dead")

func newWorld(t *testing.T, text string) *world {
	w := &world{t: t, text: text}
	w.store = memstore.New(memstore.Fail(func(string) error {
		if w.storeLost.Load() {
			return errDead
		}
		return nil
	}))
	return w
}

// sourceLines returns lines of a source file. The parameter from is the number of the first message,
// and to is the number after the last message.
func sourceLines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `{"id":"m%d","n":%d}`+"\n", i, i)
	}
	return b.String()
}

func (w *world) config(src source.Source) consumer.Config {
	return consumer.Config{
		Name: "billing", Source: src, Identity: identity.By("body:/id"), Lanes: consumer.LanesNone, Workers: 2, Batch: consumer.BatchLimits{MaxSize: 4},
		Retry: consumer.RetryPolicy{MaxAttempts: 2, InitialDelay: time.Millisecond}, Logger: slog.New(slog.DiscardHandler),
	}
}

// consumer returns the consumer that processes replayed messages.
func (w *world) consumer(src source.Source, r *semel.Replay, plans ...faults.Plan) *consumer.Consumer[*memstore.Tx] {
	w.t.Helper()
	c := w.config(src)
	c.Replay = r
	made, err := consumer.New(w.store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		if w.beforeEffect != nil {
			if err := w.beforeEffect(m); err != nil {
				return err
			}
		}
		return tx.Add(m.Identity.ID, 1)
	}, c, plans...)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// runLive runs the consumer over a text as if it were the consumer's own source.
func (w *world) runLive(text string) {
	w.t.Helper()
	if err := w.consumer(file.Stdin(strings.NewReader(text), file.Options{Format: file.JSON}), nil).Run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// source returns the source of a replay with the given progress.
func (w *world) source(p admin.ReplayProgress, perSecond int) *Source {
	from := max(p.Lanes[0].From, p.Lanes[0].After)
	section := file.Section(strings.NewReader(w.text[from:p.Lanes[0].To]), from, "in", file.Options{Format: file.JSON, Lane: "in"})
	return NewSource(section, Options{Progress: p, PerSecond: perSecond})
}

func (w *world) fullRange() admin.ReplayProgress {
	return admin.ReplayProgress{Lanes: []admin.ReplayLane{{Lane: "in", From: 0, To: int64(len(w.text)), After: -1}}}
}

// predict predicts the outcomes of all messages and returns the counts.
func (w *world) predict() admin.ReplayCounts {
	w.t.Helper()
	source := w.source(w.fullRange(), 0)
	defer func() { _ = source.Close(w.t.Context()) }()
	counts, err := Preview(w.t.Context(), source, w.consumer(nil, nil), w.config(nil), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return counts
}

var start = store.Act{Verb: "replay start", Who: "ana", Why: "x"}

// begin records a new replay of all messages.
func (w *world) begin() *Runner {
	w.t.Helper()
	r := &Runner{Store: w.store, Token: store.NewToken(), Progress: w.fullRange(), Who: "ana"}
	var err error
	if r.Number, err = w.store.NewReplay(w.t.Context(), admin.Replay{Consumer: "billing", Kind: admin.ReplayAgain, Progress: r.Progress}, r.Token, Lease, start); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// takeOver takes over a replay, as another process would do to resume the replay.
func (w *world) takeOver(number int64) *Runner {
	w.t.Helper()
	r := &Runner{Store: w.store, Token: store.NewToken(), Number: number, Who: "bo"}
	taken, err := w.store.TakeReplay(w.t.Context(), number, r.Token, Lease, start)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Progress = taken.Progress
	return r
}

// run runs a replay until it has ended.
func (w *world) run(ctx context.Context, r *Runner, perSecond int, plans ...faults.Plan) (running.Summary, admin.ReplayState, error) {
	r.Source = w.source(r.Progress, perSecond)
	return r.Run(ctx, "billing", w.consumer(r.Source, &semel.Replay{ID: r.Number}, plans...))
}

// wantEffects checks that each message was applied exactly once.
func (w *world) wantEffects(from, to int) {
	w.t.Helper()
	for i := from; i < to; i++ {
		n, _ := strconv.Atoi(string(w.store.Get(fmt.Sprintf("m%d", i))))
		if n != 1 {
			w.t.Errorf("m%d took effect %d times", i, n)
		}
	}
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
