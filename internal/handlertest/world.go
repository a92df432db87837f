package handlertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// world is a test world: a store without data, and a process that consumes messages.
type world[Tx any] struct {
	Handler[Tx]
	t    T
	plan *plan
	// The field suffix is added to the names of consumers in the store. The consumers of the world use wrapped, which
	// is Handler.Store with the faults of plan. hasInbox is true if the store has an inbox.
	suffix   string
	wrapped  store.TxStore[Tx]
	hasInbox bool

	process *consumer.Consumer[Tx] // nil while no process runs
	// attempt is semel.Message.Attempt of the next deliveries. The field replay, if not nil, is the replay to which all
	// messages belong after the next boot.
	attempt int
	replay  *semel.Replay

	mu sync.Mutex // guards the fields below
	// interfere, if not nil, is called before and after each run of the handler. If interfere returns an error, the
	// handler returns the same error.
	interfere func(at point, m *semel.Message) error
	// received contains, by index, the messages as the handler got them. The field err is the last error of the
	// handler.
	received map[int]*semel.Message
	err      error
	// runCount is the number of runs of the handler. leakedGoroutine is true after a run that did not end a goroutine.
	// A library may start a goroutine that never ends, but it does so only once. So only a second run that leaves a
	// goroutine running is a fault.
	runCount        int
	leakedGoroutine bool
	// remark describes the first rule that the handler broke in a run.
	remark error
	// onReplyLost is called when the reply of a COMMIT is lost.
	onReplyLost context.CancelFunc
}

// patience is the longest time that a test world waits for its consumer. If a world has waited for this time, the test
// concludes that the handler blocks.
const patience = 30 * time.Second

// newWorld calls start, and starts a process whose consumers have a suffix in the store.
func newWorld[Tx any](t T, start func(t T) Handler[Tx], suffix string) *world[Tx] {
	t.Helper()
	w := &world[Tx]{Handler: start(t), t: t, plan: &plan{}, received: map[int]*semel.Message{}, suffix: " " + suffix}
	w.joinSteps()
	if err := w.check(); err != nil {
		t.Fatal(err)
	}
	w.wrapped, w.hasInbox = wrap(w.Store, w.plan, w.suffix)
	t.Cleanup(w.stop)
	w.boot()
	return w
}

// check returns an error if a field of the Handler is missing.
func (h *Handler[Tx]) check() error {
	switch {
	case h.Store == nil:
		return errors.New("semeltest: Handler.Store is nil; set the store that the consumer uses")
	case h.Handle == nil:
		return errors.New("semeltest: Handler.Handle is nil; set the handler of the consumer")
	case h.Effect == nil:
		return errors.New("semeltest: Handler.Effect is nil; set a function that returns, as a text, what the handler has changed")
	case len(h.Messages) == 0 || slices.Contains(h.Messages, nil):
		return errors.New("semeltest: Handler.Messages is empty or has a nil; give two or more messages")
	}
	if checker, able := h.Store.(admin.SchemaChecker); able {
		return checker.Check(context.Background())
	}
	return nil
}

// policy returns the user's configuration, without the parts that need a broker or real time.
func (w *world[Tx]) policy() consumer.Config {
	c := w.Config
	if c.Name == "" {
		c.Name = "semeltest"
	}
	if c.Identity == nil {
		c.Identity = identity.CloudEvents()
	}
	if c.Strategy == consumer.StrategyInbox {
		c.Strategy = consumer.StrategyMarker
	}
	c.Source, c.Observers, c.Recorder, c.Replay, c.Generation, c.PreviousIdentity = nil, nil, nil, w.replay, nil, nil
	c.Owner, c.Exclusive, c.AckOnReceipt, c.ReEmitIntents, c.SenderWindows = "", false, false, false, nil
	c.Canary = 0 // the subtests count the runs of the handler
	c.AuditKey, c.IdleExit, c.MayEnd, c.Retention, c.Provider = nil, 0, nil, consumer.RetentionPolicy{}, consumer.Provider{}
	c.Lanes, c.OnParked, c.Workers, c.Drain = consumer.LanesPartition, consumer.OnParkedSkip, 1, time.Second
	c.Batch = consumer.BatchLimits{MaxTime: time.Hour} // a slow handler must not split the messages of a subtest into several batches
	c.Logger = slog.New(slog.DiscardHandler)
	if len(w.Steps) > 0 {
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		c.Retry.InitialDelay, c.Retry.MaxDelay, c.Retry.DisableBreaker = time.Hour, time.Hour, true // makeDue ends the delay
	}
	forGood, unmet := consumer.ActionPark, consumer.ActionPark
	if !w.hasInbox {
		forGood, unmet = consumer.ActionHalt, consumer.ActionRetry
	}
	c.OnFiltered = consumer.OnFilteredSkip
	for action, instead := range map[*consumer.Action]consumer.Action{
		&c.OnConflict: forGood, &c.OnBadIdentity: forGood, &c.Retry.OnExhausted: forGood, &c.OnPrecondition: unmet,
	} {
		if *action == consumer.ActionPark || *action == consumer.ActionDeadLetter {
			*action = instead
		}
	}
	if c.Version != nil && c.Version.Missing == consumer.ActionDeadLetter {
		v := *c.Version
		v.Missing, c.Version = forGood, &v
	}
	return c
}

// newConsumer returns a new consumer that uses the store of the test world. The parameter src is nil for Process and Work.
func (w *world[Tx]) newConsumer(src source.Source) *consumer.Consumer[Tx] {
	w.t.Helper()
	config, faulty := w.policy(), faults.Plan{Seed: seed, At: func(p faults.Point, _ int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if p == faults.CommitReplyLost && w.onReplyLost != nil && w.plan.crashed() {
			w.onReplyLost()
		}
	}}
	config.Source = src
	var c *consumer.Consumer[Tx]
	var err error
	if len(w.Steps) > 0 {
		c, err = consumer.NewSteps(w.wrapped, w.watchedSteps(), config, faulty)
	} else {
		c, err = consumer.New(w.wrapped, w.handle, config, faulty)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// seed makes the delays of consumers the same in every run.
const seed = 1

// boot starts a process, which does not crash, on the store in its present state.
func (w *world[Tx]) boot() {
	w.t.Helper()
	w.stop()
	w.plan.set(func(p *plan) { p.crash, p.skip, p.dead = nowhere, 0, false })
	w.process = w.newConsumer(nil)
	w.makeDue(store.StateInProgress)
}

func (w *world[Tx]) stop() {
	if w.process != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = w.process.Close(ctx) // after a crash, Close returns the error of the store
	}
	w.process = nil
}

// handle is the handler that the consumer runs.
func (w *world[Tx]) handle(ctx context.Context, tx Tx, m *semel.Message) error {
	return w.watch(ctx, tx, m, w.Handle)
}

// watch calls the user's handler, or one of its steps, and checks what it does.
func (w *world[Tx]) watch(ctx context.Context, tx Tx, m *semel.Message, handle func(context.Context, Tx, *semel.Message) error) (err error) {
	before := clone(m)
	if err := w.faultAt(beforeHandle, m); err != nil {
		return err
	}
	w.mu.Lock()
	w.received[w.number(m)] = before
	w.runCount++
	run := fmt.Sprint(w.suffix, " ", w.runCount)
	w.mu.Unlock()
	left := runWatched(run, func() { err = callGuarded(ctx, tx, m, handle) })
	w.recordRun(err, errors.Join(checkUnchanged(before, m), checkTxOpen(ctx, tx, err)), left)
	if err != nil {
		return err
	}
	return w.faultAt(afterHandle, m)
}

// recordRun stores the error of a run, and the rule that the handler broke in the run.
func (w *world[Tx]) recordRun(err, remark, left error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	if left != nil && !w.leakedGoroutine {
		w.leakedGoroutine, left = true, nil
	}
	if w.remark == nil {
		w.remark = errors.Join(remark, left)
	}
}

// faultAt returns the error with which a run of the handler must fail at the given point.
func (w *world[Tx]) faultAt(at point, m *semel.Message) error {
	if err := w.plan.crashAt(at); err != nil {
		return err
	}
	w.mu.Lock()
	interfere := w.interfere
	w.mu.Unlock()
	if interfere != nil {
		return interfere(at, m)
	}
	return nil
}

// number returns the index of the message that has the same identity as m.
func (w *world[Tx]) number(m *semel.Message) int {
	return slices.IndexFunc(w.Messages, func(o *semel.Message) bool { return sameID(w.policy(), o, m) })
}

// sameID reports whether two messages have the same identity.
func sameID(c consumer.Config, a, b *semel.Message) bool {
	from, id, err := c.Identity.Identify(clone(a))
	if err != nil {
		return false
	}
	otherFrom, other, err := c.Identity.Identify(clone(b))
	return err == nil && from == otherFrom && id == other
}

// clone returns a deep copy of m, as a further delivery would have.
func clone(m *semel.Message) *semel.Message {
	c := *m
	c.Body, c.Key = bytes.Clone(m.Body), bytes.Clone(m.Key)
	c.Headers = slices.Clone(m.Headers)
	for i := range c.Headers {
		c.Headers[i].Value = bytes.Clone(c.Headers[i].Value)
	}
	return &c
}

func checkUnchanged(before, after *semel.Message) error {
	same := bytes.Equal(before.Body, after.Body) && bytes.Equal(before.Key, after.Key) && before.Attributes == after.Attributes &&
		slices.EqualFunc(before.Headers, after.Headers, func(a, b semel.Header) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) })
	if same {
		return nil
	}
	return errors.New(saysChanged)
}

// deliver delivers copies of messages together, and returns for each copy whether it was acked or nacked.
func (w *world[Tx]) deliver(all ...*semel.Message) ([]consumer.Disposition, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	w.mu.Lock()
	w.onReplyLost = cancel
	w.mu.Unlock()
	copies := make([]*semel.Message, len(all))
	for i := range all {
		copies[i] = clone(all[i])
		copies[i].Attempt = w.attempt
	}
	if len(w.Steps) > 0 {
		return w.runSteps(ctx, copies)
	}
	return w.process.ProcessAll(ctx, copies)
}

// deliverOne delivers message i, and returns whether the message was acked or nacked.
func (w *world[Tx]) deliverOne(i int) (consumer.Disposition, error) {
	all, err := w.deliver(w.Messages[i])
	if err != nil {
		return consumer.Disposition{}, err
	}
	return all[0], nil
}

// deliverAndCheck delivers message i. If the message is not acked with one of the given outcomes, deliverAndCheck
// returns an error.
func (w *world[Tx]) deliverAndCheck(i int, want ...source.End) error {
	d, err := w.deliverOne(i)
	switch {
	case err != nil:
		return fmt.Errorf("%s has no outcome: %w", w.name(i), errors.Join(err, w.handlerError()))
	case d.Kind == semel.Ack && slices.Contains(want, d.Ending):
		return nil
	}
	why := w.handlerError()
	if why == nil {
		why = fmt.Errorf("the handler returned no error, and the reason is %q", d.Reason)
	}
	return fmt.Errorf("%s ended as %s (%s): %w", w.name(i), d.Ending, d.Kind, why)
}

func (w *world[Tx]) handlerError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var aborted error
	w.plan.set(func(p *plan) { aborted = p.aborted })
	return errors.Join(w.err, aborted)
}

// effect returns the present text of Handler.Effect.
func (w *world[Tx]) effect() string {
	w.t.Helper()
	text, err := w.Effect(w.t.Context())
	if err != nil {
		w.t.Fatalf("semeltest: Handler.Effect: %v", err)
	}
	return text
}

// work processes the rows of the inbox that can run now.
func (w *world[Tx]) work() error {
	if !w.hasInbox {
		return nil
	}
	w.stop()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	err := w.newConsumer(nil).Work(ctx)
	w.boot()
	return err
}

// name returns the name of message i in the texts of errors.
func (w *world[Tx]) name(i int) string {
	_, id, err := w.policy().Identity.Identify(clone(w.Messages[i]))
	if err != nil {
		return fmt.Sprintf("message %d", i+1)
	}
	return fmt.Sprintf("message %d (id %.40q)", i+1, id)
}
