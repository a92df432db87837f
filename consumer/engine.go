package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/control"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/consumer/internal/notify"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/consumer/internal/schema"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// engine carries out the machine's actions for one run of a consumer. A message
// passes its files in this order: intake.go (fetch, identity), flight.go (begin),
// handler.go (run), flight.go (commit), settler.go. The loop below owns the machine; everything
// else reports to it through events.
type engine[Tx any] struct {
	config  *settings
	store   runner.Store
	runner  runner.Runner[Tx]
	detour  *runner.FailOpenPath // nil: there is no way past the store
	source  source.Source
	handler handler[Tx]
	scopes  *scopes.Cache[Tx]
	recheck *schema.Recheck

	machine *machine.Machine
	// recording is nil where nothing is recorded.
	recording *recording.Tape
	began     time.Time
	events    chan machine.Event
	group     worker.Group // fetcher and settler
	crew      worker.Group // pilots
	// base ends when the run is over; what runs beside the loop derives from it.
	base   context.Context
	cancel context.CancelFunc

	intake   *intake
	inbox    *inbox.Inbox   // nil: the store keeps none
	reaper   *upkeep.Reaper // nil: the store removes nothing
	sealer   *upkeep.Sealer // nil: the store seals nothing
	control  *control.Control
	bell     *notify.Bell // nil: nobody notifies
	pilots   []*pilot[Tx]
	settler  *settler
	lanes    *laneEvents
	timer    *time.Timer
	reporter *reporter
	done     *machine.Done
	// behind is why the source gave up, and gaveUp is closed then. Of the loop.
	behind error
	gaveUp chan struct{}

	mutex  sync.Mutex
	counts machine.Counts // guarded by mutex
	load   machine.Load   // guarded by mutex
	over   bool           // the loop has ended; guarded by mutex
	// stepping is when the step began that the loop is in, 0 while it waits.
	stepping atomic.Int64
	// took: a message was the consumer's; skipping: it is said that none is. Of
	// the loop.
	took, skipping bool
	left           []semel.Unfinished // guarded by mutex
	// ofProcess: the run is that of Process, whose messages are handed in one by one.
	ofProcess bool
	// lined: what comes behind a message that waits in the inbox waits there, too.
	lined bool
}

func newEngine[Tx any](c *Consumer[Tx], src source.Source, info source.Info) *engine[Tx] {
	in, began := c.inbox(), time.Now()
	if in != nil {
		in.Since = began
	}
	policy := machineConfig(c.config, info, c.oneAttempt, in != nil, c.config.way == byTransaction && c.config.limits.SingleWriter)
	e := &engine[Tx]{
		config: c.config, store: c.store, runner: c.runner, detour: c.detour, source: src, handler: c.handler, scopes: c.scopes,
		machine: machine.New(policy),
		began:   began,
		// Every sender below has at most one event under way, except lanes,
		// which wait for room or for the run's end.
		events:   make(chan machine.Event, 2*c.config.Workers+8),
		reporter: c.reporter, gaveUp: make(chan struct{}), inbox: in, control: c.control, lined: in != nil && c.config.OnParked == OnParkedBlock,
		ofProcess: c.oneAttempt,
	}
	e.recording = c.config.recorded(e.machine, policy, e.began)
	if notifier, ok := c.store.(store.Notifier); ok && in != nil && src != (noSource{ends: true}) {
		e.bell = notify.New(c.config.Name, c.config.Logger, c.config.Inbox.Poll, notifier)
	}
	e.recheck = schema.New(c.store, c.scopes.Forget, e.began)
	e.base, e.cancel = context.WithCancel(context.WithValue(context.Background(), keepingOf{}, e.keeps()))
	ages := new(upkeep.LaneAges)
	e.upkeep(c, info, ages)
	e.intake = &intake{config: c.config, source: src, info: info, reaper: e.reaper, ages: ages, orders: make(chan machine.Fetch, 1), reporter: c.reporter}
	if !c.oneAttempt { // Process hands back, and waits for nothing
		e.intake.control = c.control
	}
	e.settler = newSettler(src, c.config, e.results)
	e.settler.emit = e.emit
	e.lanes = &laneEvents{reporter: c.reporter, ages: ages, events: e.events, over: e.base.Done(), waiting: map[source.Lane]chan struct{}{}}
	for range c.config.Workers {
		e.pilots = append(e.pilots, &pilot[Tx]{engine: e, orders: make(chan machine.Action, 1)})
	}
	return e
}

// upkeep makes what maintains the store beside a run, which has more than the inbox.
func (e *engine[Tx]) upkeep(c *Consumer[Tx], info source.Info, ages *upkeep.LaneAges) {
	if e.source == (noSource{ends: true}) {
		return
	}
	if reaper, able := e.store.(store.Reaper); able {
		e.reaper = upkeep.NewReaper(upkeep.ReaperOptions{
			Retention: e.config.retention, Store: reaper, Turns: c.turns, Info: info, ByCalls: c.oneAttempt, Lanes: ages,
			Ready: e.reporter.State, InFlight: func() int64 { return e.snapshot().InFlight },
		})
	}
	if auditor, able := e.store.(admin.Auditor); able {
		e.sealer = &upkeep.Sealer{Guard: e.config.guard, Store: auditor, Turns: c.turns, Key: e.config.AuditKey}
	}
}

// tasks returns the maintenance tasks of a run.
func (e *engine[Tx]) tasks() (tasks []*upkeep.Task) {
	if e.reaper != nil {
		tasks = append(tasks, e.reaper.Task())
	}
	if e.sealer != nil {
		tasks = append(tasks, e.sealer.Task())
	}
	return tasks
}

// run works until the machine is done. The order of stopping: the machine
// drains; then fetcher, pilots and settler are told to end and waited for; then
// the source is closed.
func (e *engine[Tx]) run(ctx context.Context) error {
	defer e.cancel()
	e.timer = time.NewTimer(time.Hour)
	defer e.timer.Stop()
	if err := e.config.guard.Source("Lanes", func() error { e.source.Lanes(e.lanes); return nil }); err != nil {
		return fmt.Errorf("semel: consumer %s: %w", e.config.Name, err)
	}
	e.logStart()
	e.group.Keep(func() { e.intake.work(e.base, e.events) })
	e.group.Keep(func() { e.settler.work(e.base, e.events) })
	if e.inbox != nil {
		e.group.Keep(func() { e.inbox.Work(e.base, e.events) })
		e.group.Keep(func() { e.inbox.Keeper.Work(e.base) })
	}
	if e.bell != nil {
		e.group.Keep(func() { e.bell.Send(e.base) })
		e.group.Keep(func() { e.bell.Listen(e.base) })
	}
	if tasks := e.tasks(); len(tasks) > 0 {
		e.group.Keep(func() { upkeep.Run(e.base, tasks) })
	}
	if e.control != nil {
		e.group.Keep(func() { e.control.Watch(e.base) })
	}
	for _, p := range e.pilots {
		e.crew.Keep(p.work)
	}
	e.loop(ctx)
	e.noteOver()
	err := e.shutDown()
	e.logEnd(err)
	return err
}

func (e *engine[Tx]) loop(ctx context.Context) {
	stop, gaveUp := ctx.Done(), e.gaveUp
	notified := e.bell.Heard() // by other processes
	var patience <-chan time.Time
	var event machine.Event = machine.Timer{}
	for {
		now := time.Since(e.began)
		actions := e.step(event, now)
		// Before they are carried out: who hears of a settlement finds it counted.
		e.note(now)
		for _, a := range actions {
			e.carryOut(a)
		}
		e.noteSkipping(false)
		e.stepping.Store(0)
		if e.done != nil {
			return
		}
		select {
		case event = <-e.events:
			e.noteBehind(event)
		case <-gaveUp:
			gaveUp, event = nil, machine.Stop{}
		case <-e.timer.C:
			event = machine.Timer{}
		case <-notified:
			event = machine.Due{}
		case <-stop:
			stop, patience, event = nil, time.After(waitsAfter), machine.Stop{}
		case <-patience:
			patience, event = nil, machine.Timer{}
			e.noteWaiting()
		}
	}
}

// noteBehind ends the run of a source that gave up. What it could not settle comes
// again.
func (e *engine[Tx]) noteBehind(event machine.Event) {
	if f, ok := event.(machine.Fetched); ok && e.behind == nil && errors.Is(f.Err, semel.ErrBehind) {
		e.behind = f.Err
		close(e.gaveUp)
	}
}

func (e *engine[Tx]) carryOut(a machine.Action) {
	switch a := a.(type) {
	case machine.Fetch:
		e.intake.order(a)
	case machine.CancelFetch:
		e.intake.cancelFetch(a.Idle)
	case machine.Begin:
		e.took = true
		e.pilots[a.Flight.Worker].orders <- a
	case machine.Run:
		e.pilots[a.Flight.Worker].orders <- a
	case machine.Commit:
		e.pilots[a.Flight.Worker].orders <- a
	case machine.Rollback:
		e.pilots[a.Flight.Worker].orders <- a
	case machine.StopRun:
		e.pilots[a.Flight.Worker].stopRun(a)
	case machine.Kill:
		e.pilots[a.Flight.Worker].kill(a.Flight)
	case *machine.Settle:
		e.reporter.settled(a)
		e.bell.Settled(a)
		e.settler.add(a)
	case machine.Over:
		e.reporter.ended(&a.Settlement)
	case machine.ClaimRows:
		e.inbox.Ask(a)
	case machine.Unclaim:
		e.inbox.Free(a)
	case machine.Flow:
		e.flow(a)
	case machine.Release:
		e.lanes.release(a.Lane)
	case machine.Wake:
		e.timer.Reset(max(0, a.At-time.Since(e.began)))
	case machine.Report:
		e.reporter.Report(a)
	case machine.Done:
		e.done = &a
		e.reporter.Done(a)
	}
}

func (e *engine[Tx]) snapshot() semel.Counts {
	e.mutex.Lock()
	c := e.counts
	e.mutex.Unlock()
	reEmitted, notReEmitted := e.reporter.Intents()
	out := semel.Counts{
		Deliveries: c.Deliveries, Applied: c.Applied, Duplicates: c.Duplicates, Conflicts: c.Conflicts, Parked: c.Parked,
		DeadLettered: c.DeadLettered, Discarded: c.Discarded, Skipped: c.Skipped, Failed: c.Failed, Retried: c.Retried, Rerun: c.Rerun,
		SameContent: e.reporter.SameContent(), WithoutKey: e.detour.Count(), ReEmitted: reEmitted, NotReEmitted: notReEmitted, Received: c.Received, Waiting: c.Waiting, Inbox: semel.InboxCounts(c.Claims),
	}
	out.InFlight = out.Deliveries - out.Applied - out.Duplicates - out.Conflicts - out.Parked - out.DeadLettered - out.Discarded - out.Skipped - out.Received - out.Waiting - out.Failed
	return out
}

// haltError says which message halted a consumer.
type haltError struct {
	key    semel.Key
	reason semel.Reason
	err    error
	// claimed: it is of the inbox.
	claimed bool
}

// Error is one line that is safe to print: a program prints what Run returns,
// and the error of a handler or of a database may hold a payload's text.
func (e *haltError) Error() string {
	text := fmt.Sprintf("consumer %s halted by message %q of source %q: %s", e.key.Consumer, e.key.ID, e.key.Source, legible.Printable(string(e.reason)))
	if e.err != nil {
		text += ": " + legible.Printable(legible.Text(e.err))
	}
	if e.claimed {
		return text + "; it waits in the inbox and is tried again at the next start"
	}
	return text + "; it is unsettled and comes again at the next start"
}

func (e *haltError) Unwrap() []error { return []error{semel.ErrHalted, e.err} }

// laneEvents passes what a source says of lanes to the machine.
type laneEvents struct {
	reporter *reporter
	ages     *upkeep.LaneAges
	first    sync.Once // a lane was given
	events   chan<- machine.Event
	over     <-chan struct{}

	mutex   sync.Mutex
	waiting map[source.Lane]chan struct{} // guarded by mutex
}

func (d *laneEvents) send(e machine.Event) {
	select {
	case d.events <- e:
	case <-d.over:
	}
}

func (d *laneEvents) Given(l source.Lane) {
	d.first.Do(d.reporter.SourceAnswered)
	d.ages.Given(l.ID)
	d.send(machine.Given{Lane: l})
}

func (d *laneEvents) Lost(l source.Lane) {
	d.ages.Lost(l.ID)
	d.send(machine.Lost{Lane: l})
	d.release(l)
}

func (d *laneEvents) Revoking(ctx context.Context, l source.Lane) {
	released := make(chan struct{})
	d.mutex.Lock()
	d.waiting[l] = released
	d.mutex.Unlock()
	d.send(machine.Revoking{Lane: l})
	select {
	case <-released:
	case <-ctx.Done():
	case <-d.over:
	}
}

func (d *laneEvents) release(l source.Lane) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if released := d.waiting[l]; released != nil {
		close(released)
		delete(d.waiting, l)
	}
}

// ending is the machine's name for it.
func (t Action) ending() machine.Ending {
	switch t {
	case ActionHalt:
		return machine.EndHalt
	case ActionDiscard:
		return machine.EndDiscard
	case ActionKeepFirst:
		return machine.EndKeepFirst
	case ActionRetry:
		return machine.EndRetry
	case ActionDeadLetter:
		return machine.EndDeadLetter
	}
	return machine.EndPark
}

// kept is the machine's name for it.
func (m LaneMode) kept() machine.Lanes {
	switch m {
	case LanesNone:
		return machine.NoOrder
	case LanesKey:
		return machine.Key
	}
	return machine.Partition
}

func machineConfig(c *settings, info source.Info, oneAttempt, inbox, turns bool) machine.Config {
	lanes := c.Lanes.kept()
	if oneAttempt {
		lanes = machine.NoOrder
	}
	cost := time.Second / time.Duration(c.Retry.Budget.PerSecond)
	gap, most := c.gap()
	return machine.Config{
		Lanes: lanes, Workers: c.Workers, Most: c.Batch.MaxSize, BatchTime: c.Batch.MaxTime, MaxInMemoryWait: c.MaxInMemoryWait,
		MaxMessages: c.MaxUnacked.Messages, MaxBytes: c.MaxUnacked.Bytes, Drain: c.Drain,
		MaxAttempts: c.Retry.MaxAttempts, InitialDelay: c.Retry.InitialDelay, MaxDelay: c.Retry.MaxDelay, OnExhausted: c.Retry.OnExhausted.ending(),
		RetryCost: cost, RetryShare: cost * time.Duration(c.Retry.Budget.Percent) / 100, RetrySaved: time.Minute, TrialAfter: c.Retry.SerialAfter,
		BreakerThreshold: c.Retry.breakerThreshold(), HaltLater: c.Retry.BreakerThreshold > 0,
		OnConflict: c.OnConflict.ending(), OnBadIdentity: c.OnBadIdentity.ending(), OnPrecondition: c.OnPrecondition.ending(), OnFiltered: c.OnFiltered.ending(), OnUnversioned: c.onUnversioned().ending(), OnExpired: c.Retention.OnExpired.ending(), Gap: gap, GapCap: most,
		IdleExit: c.IdleExit, Ends: info.AtEnd != nil, Bounded: info.Bounded, BackoffFirst: 50 * time.Millisecond, BackoffMost: 5 * time.Second, SerialFor: c.serialFor(), OneWriter: turns,
		Unmarked: !c.Strategy.marks(), OneAttempt: oneAttempt, Seed: c.guard.Plan.Seed,
		Inbox: inbox, Wait: inbox && c.Strategy.marks(), Poll: c.Inbox.Poll, Receive: inbox && c.AckOnReceipt, Keep: inbox && c.Strategy == StrategyInbox,
		Block: inbox && c.OnParked == OnParkedBlock, NoRows: !c.rows, ClaimsAlone: c.way.overRows() || c.stepsOfVersions(), Alone: c.way == byLookup,
	}
}
