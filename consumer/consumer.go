package consumer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/control"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/consumer/internal/naming"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/consumer/internal/sources"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Consumer is a named handler with its settings. A Consumer is safe for concurrent use.
type Consumer[Tx any] struct {
	config   *settings
	store    runner.Store
	runner   runner.Runner[Tx]
	handler  engine.Handler[Tx]
	scopes   *scopes.Cache[Tx]
	reporter *engine.Reporter
	names    *naming.Names
	control  *control.Control // nil if the store does not implement admin.Controls
	turns    upkeep.Turns
	failOpen *runner.FailOpenPath // nil unless KeyPolicy.FailOpen is set

	mutex      sync.Mutex
	started    bool                        // guarded by mutex
	engine     *engine.Engine[Tx]          // used by Run, Work and Process; guarded by mutex
	loop       *sources.Calls[Disposition] // used by Process; guarded by mutex
	oneAttempt bool                        // Process was called; guarded by mutex
	stop       context.CancelFunc          // ends the run of Process; guarded by mutex
	group      worker.Group
	ended      error // the error with which the run of Process ended; valid after group has ended
}

// New returns a consumer that runs handle once for each message, in batches that share a transaction. New reports all
// faults of the configuration together. The function handle must write its effect through tx and must not commit or
// roll back. After a rollback, the function handle may run again for the same message. See semel.Retry, semel.Permanent
// and semel.Park for the errors that handle can return. If the store has no inbox (store.Inbox), set Retry.OnExhausted,
// OnConflict, OnBadIdentity and OnPrecondition, because their default ActionPark is then rejected. The parameter plans
// is for tests.
func New[Tx any](st store.TxStore[Tx], handle func(ctx context.Context, tx Tx, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Tx], error) {
	return newConsumer(st, engine.Handler[Tx]{One: handle}, c, plans)
}

// NewBatch does the same as New, for a handler of whole batches (set-based effects). If a batch fails, the batch is
// split until the failing message is alone.
func NewBatch[Tx any](st store.TxStore[Tx], handle func(ctx context.Context, tx Tx, ms []*semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Tx], error) {
	return newConsumer(st, engine.Handler[Tx]{All: handle}, c, plans)
}

func newConsumer[Tx any](st store.TxStore[Tx], h engine.Handler[Tx], policy Config, plans []faults.Plan) (*Consumer[Tx], error) {
	c, err := policy.settings(needsOf(&h, byTransaction, st), plans)
	if err != nil {
		return nil, err
	}
	return assemble(c, st, runner.NewTransactions(st, c.rows), h), nil
}

// assemble returns a consumer with checked settings.
func assemble[Tx any](c *settings, store runner.Store, r runner.Runner[Tx], h engine.Handler[Tx]) *Consumer[Tx] {
	n, turns := engine.NewReporter(c.Name, c.Logger, c.Observers, c.Source != nil), upkeep.NewTurns()
	made := &Consumer[Tx]{
		config: c, store: store, runner: r, handler: h, reporter: n, turns: turns,
		scopes: scopes.New[Tx](c.Name, store, c.limits.SingleWriter),
		control: control.New(store, control.Options{
			Consumer: c.Name, Stored: c.controlName(), Logger: c.Logger, Turn: turns.Do, Notify: n.Notify, NotAsked: n.SourceNotAsked}),
	}
	made.names = &naming.Names{
		Guard: c.guard, Store: store, Kept: asFeature[admin.Derivations](store), Marked: c.Identity != nil && c.Strategy.marks(), Versions: c.Version != nil,
		Identity: derivationOf(c.Identity), Owner: c.Owner, Exclusive: c.Exclusive, Generation: c.generation(), SetGenerations: made.scopes.SetGenerations,
	}
	if c.PreviousIdentity != nil {
		made.names.Previous = derivationOf(c.PreviousIdentity.Identity)
	}
	return made
}

// Run consumes until ctx ends, the source ends, Config.IdleExit has passed, or a message stops the consumer
// (semel.ErrHalted). Run may be called once.
//
// When ctx ends, Run drains for at most Config.Drain, and returns nil if all handlers have ended by then. If handlers
// still run after Config.Drain, Run returns within 5 s more, with an error that lists these handlers.
//
// If Run returns an error before the first fetch, nothing has been changed, and the error says which
// requirement is not met. semel.ErrUnfinished means that the run ended because of IdleExit or the end of the
// source, but some lanes have messages that were not read or that a newer release marked; see Unfinished.
// semel.ErrBehind means that the store lacks records of messages that the broker counts as acked.
//
// While an operator has paused the consumer (admin.Controls), Run waits and is not idle. With StrategyInbox the
// consumer may have no Source; in this case Run processes the store's inbox until ctx ends or Config.IdleExit has
// passed.
func (c *Consumer[Tx]) Run(ctx context.Context) error {
	e, err := c.startRun(ctx)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

func (c *Consumer[Tx]) startRun(ctx context.Context) (*engine.Engine[Tx], error) {
	switch {
	case c.config.Source != nil:
		return c.start(ctx, c.config.Source)
	case c.config.Strategy == StrategyInbox:
		return c.startWork(ctx, sources.None{})
	}
	return nil, fmt.Errorf("semel: consumer %q has no Source; set Config.Source, or use Process", c.config.Name)
}

// start checks store and source and creates the engine of the run.
func (c *Consumer[Tx]) start(ctx context.Context, src source.Source) (*engine.Engine[Tx], error) {
	info, err := c.check(ctx, src)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.take(src, info)
}

// take creates the engine. The second call of take for a consumer returns an error. The caller has locked the mutex.
func (c *Consumer[Tx]) take(src source.Source, info source.Info) (*engine.Engine[Tx], error) {
	if c.started {
		return nil, fmt.Errorf("semel: consumer %q has been started already, and Run and Work are for once: make another with New: %w", c.config.Name, semel.ErrClosed)
	}
	c.started = true
	in := c.inbox()
	c.engine = engine.New(c.config.engineConfig(info, c.oneAttempt, in != nil), engine.Parts[Tx]{
		Store: c.store, Runner: c.runner, FailOpen: c.failOpen, Source: src, Info: info, Handler: c.handler, Scopes: c.scopes, Reporter: c.reporter,
		Control: c.control, Turns: c.turns, Inbox: in, ByCalls: c.oneAttempt, InboxOnly: inboxOnly(src),
	})
	return c.engine, nil
}

// currentEngine returns the engine of the consumer's run, also after the run; nil before the run.
func (c *Consumer[Tx]) currentEngine() *engine.Engine[Tx] {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.engine
}

// Counts returns the counters of the consumer. Counts may be called at any time.
func (c *Consumer[Tx]) Counts() semel.Counts {
	e := c.currentEngine()
	if e == nil {
		return semel.Counts{}
	}
	return e.Snapshot()
}

// Unfinished returns the messages that were not acked when Run ended because of Config.IdleExit or the end of the
// source. Unfinished returns messages that the source could not deliver (if the source has source.Info.Idle), and
// messages that wait for a newer release. After the end of a source, Run waits 5 s longer for messages that wait for a
// newer release.
func (c *Consumer[Tx]) Unfinished() []semel.Unfinished {
	e := c.currentEngine()
	if e == nil {
		return nil
	}
	return e.Unfinished()
}

// Ready reports whether the consumer works. If the consumer is not ready, Ready also returns the reason. A consumer is
// not ready
//   - before store and source have responded, and while one of them is down;
//   - while a handler does not return after its timeout;
//   - while the key store does not record the outcomes of calls;
//   - while nothing is fetched because Config.MaxUnacked is reached by messages that a newer release marked and
//     by messages behind them;
//   - while the circuit breaker is open.
//
// A source without messages counts as working when the source assigns its first lane, or a minute after the start. A
// consumer for Process checks its store with the first call of Process, and is ready before that call.
//
// Ready can also return a reason for a ready consumer: an operator has paused or limited the consumer (admin.Controls);
// messages wait for a newer release; the key store is down and the consumer works without the store
// (KeyPolicy.FailOpen); lanes have failed while other lanes continue (source.Info.LaneFaults).
func (c *Consumer[Tx]) Ready() (bool, string) {
	ready, why := c.reporter.State()
	var reasons []string
	if why != "" {
		reasons = append(reasons, why)
	}
	reasons = append(reasons, c.control.Reasons()...)
	reasons = append(reasons, c.reporter.Held()...)
	reasons = append(reasons, c.failOpen.Reasons()...)
	return ready, strings.Join(append(reasons, c.laneFaults()...), "; ")
}

// laneFaults returns the failed lanes and the causes.
func (c *Consumer[Tx]) laneFaults() (reasons []string) {
	if c.config.Source == nil {
		return nil
	}
	var faults []semel.Unfinished
	err := c.config.guard.Source("LaneFaults", func() error {
		if failed := c.config.Source.Info().LaneFaults; failed != nil {
			faults = failed()
		}
		return nil
	})
	if err != nil {
		reasons = append(reasons, "which lanes stand still is not known: "+err.Error())
	}
	for _, l := range faults {
		reasons = append(reasons, "lane "+l.Lane+" stands still: "+l.Reason)
	}
	return reasons
}

// TryMark marks the message in a transaction that the caller has opened. The store must implement store.CallerTx. If
// the returned Verdict is Fresh, write the effect in tx; for any other Verdict write no effect. Commit tx with the
// effect, and ack the message afterwards. semel.ErrUnsupported and identity errors mean that nothing was written.
// semel.ErrOld means that the message is older than the retention; roll tx back. semel.ErrSchema, with the Verdict
// Newer, means that a newer release marked the message; do not ack the message.
func (c *Consumer[Tx]) TryMark(ctx context.Context, tx Tx, m *semel.Message) (store.Verdict, error) {
	marker, ok := c.store.(store.CallerTx[Tx])
	if !ok {
		return store.Verdict{}, fmt.Errorf("semel: the store cannot write marks in your transaction: %w", semel.ErrUnsupported)
	}
	if err := c.config.ownTransactions(); err != nil {
		return store.Verdict{}, err
	}
	if c.config.Identity == nil {
		return store.Verdict{}, fmt.Errorf("semel: consumer %q has no Identity, so its messages cannot be marked: %w", c.config.Name, semel.ErrUnsupported)
	}
	if c.config.Version != nil {
		return store.Verdict{}, fmt.Errorf("semel: consumer %q has versions, which only its own batches can apply; use Process: %w", c.config.Name, semel.ErrUnsupported)
	}
	if err := c.deriveOnce(ctx); err != nil {
		return store.Verdict{}, err
	}
	p := delivery.Read(&c.config.rules, &source.Delivery{Message: m, Before: source.Unknown})
	if p.Item.Refused != nil {
		return store.Verdict{}, &identity.Error{Reason: p.Item.Refused.Reason, Detail: "nothing was marked"}
	}
	mark, err := c.markIn(ctx, tx, p, store.Applied)
	if err != nil {
		return store.Verdict{}, err
	}
	marks := []store.Mark{mark}
	verdicts, err := marker.MarkIn(ctx, tx, marks)
	if err == nil {
		err = c.rejectExpired(marks, verdicts)
	}
	if err != nil {
		return store.Verdict{}, err
	}
	if v := verdicts[0]; v.Kind == store.Newer {
		return v, fmt.Errorf("semel: a newer release wrote the marker (outcome %d); neither apply nor settle the message: %w", int64(v.Was), semel.ErrSchema)
	}
	return verdicts[0], nil
}

// Work processes due rows of the store's inbox without a source. Work processes all rows of the consumer, or
// only the rows with the given numbers. Work ends when no row is due and no claim is open, or when ctx ends.
// Work is for programs that process received or retried messages without a running consumer. While an
// operator has paused the consumer, Work waits. Left reports the rows that are due later. Work may be called
// once, and not together with Run. semel.ErrUnsupported means that the store has no inbox.
func (c *Consumer[Tx]) Work(ctx context.Context, numbers ...int64) error {
	e, err := c.startWork(ctx, sources.None{Ends: true})
	if err != nil {
		return err
	}
	e.LimitToRows(numbers)
	return e.Run(ctx)
}

// startWork starts a run that only processes the inbox.
func (c *Consumer[Tx]) startWork(ctx context.Context, s sources.None) (*engine.Engine[Tx], error) {
	c.mutex.Lock()
	in := c.inbox()
	c.mutex.Unlock()
	if in == nil {
		return nil, fmt.Errorf("semel: consumer %q has no Source, and its store no inbox to work on: %w", c.config.Name, semel.ErrUnsupported)
	}
	return c.start(ctx, s)
}

// inbox returns a new inbox for a run. The result is nil for Process, and if the store has no inbox. A
// consumer without markers also has an inbox, for parked rows that are retried. The caller has locked the mutex.
func (c *Consumer[Tx]) inbox() *inbox.Inbox {
	leases, claims := c.store.(store.Leases)
	rows, keeps := c.store.(store.Inbox)
	if !claims || !keeps || c.oneAttempt {
		return nil
	}
	o := inbox.Options{
		Guard: c.config.guard, Leases: leases, Rows: rows, Lease: c.config.Inbox.Lease, Rules: &c.config.rules, Refuse: c.config.refusalOf,
		Notify: c.reporter.Notify, Control: c.control,
	}
	if lines := asFeature[admin.Lines](c.store); lines != nil {
		o.Sweep = &upkeep.LaneSweep{Guard: c.config.guard, Lines: lines, Kept: c.config.OnParked == OnParkedBlock, Within: c.config.Inbox.Lease / 2}
	}
	return inbox.New(o)
}

// Load returns the numbers of messages and bytes that the consumer has in memory. Before and after the run,
// Load returns zeros. Load may be called at any time and makes no request.
func (c *Consumer[Tx]) Load() measure.Load {
	if e := c.currentEngine(); e != nil {
		return e.Load()
	}
	return measure.Load{}
}

// Alive reports whether the consumer works. A consumer is also alive while its store or its source is down, while an
// operator has paused the consumer, and before and after its run. A consumer is not alive if the handlers of all
// workers still run after their timeouts, or if the engine itself hangs; Alive then returns that reason. A restart of
// the process fixes handlers that do not return, and an engine that hangs. A restart does not fix the other reasons of
// Ready. Alive may be called at any time and makes no request.
func (c *Consumer[Tx]) Alive() (bool, string) {
	if e := c.currentEngine(); e != nil {
		return e.Alive()
	}
	return true, ""
}

// StoreDown returns the time since which the store, or the store of the keys, has been down, and why the
// store is down. The time is zero while the store works, and before the first request. A liveness probe that
// must fail after a long outage can use StoreDown. StoreDown may be called at any time and makes no request.
func (c *Consumer[Tx]) StoreDown() (since time.Time, why string) { return c.reporter.StoreDown() }
