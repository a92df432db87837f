// Package engine runs a consumer once. The machine decides on actions; the engine carries out these actions
// and reports their results to the machine.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Engine carries out the machine's actions for one run of a consumer. A message is handled in these files, in this
// order: intake.go (fetch), flight.go (begin), handler.go (run), flight.go (commit), settler.go (ack). Only the method
// loop uses the machine; all other goroutines send events to the loop.
type Engine[Tx any] struct {
	Parts[Tx]
	config  *Config
	recheck *schema.Recheck

	machine *machine.Machine
	// recording is nil if nothing is recorded.
	recording *recording.Tape
	began     time.Time
	events    chan machine.Event
	group     worker.Group // runs the fetcher and the settler
	crew      worker.Group // runs the pilots
	// base ends when the run is over. The contexts of all goroutines except the loop derive from base.
	base   context.Context
	cancel context.CancelFunc

	intake  *intake
	reaper  *upkeep.Reaper // nil if the store does not implement store.Reaper
	sealer  *upkeep.Sealer // nil if the store does not implement admin.Auditor
	bell    *notify.Bell   // nil if the store does not implement admin.Notifier
	pilots  []*pilot[Tx]
	settler *settler
	lanes   *laneEvents
	timer   *time.Timer
	done    *machine.Done
	// behindErr is the semel.ErrBehind error of the source. The channel gaveUp is closed when behindErr is set. Only
	// the loop uses behindErr and gaveUp.
	behindErr error
	gaveUp    chan struct{}

	mutex  sync.Mutex
	counts machine.Counts // guarded by mutex
	load   machine.Load   // guarded by mutex
	over   bool           // the loop has ended; guarded by mutex
	// stepping is the time at which the current step of the loop began, or 0 while the loop waits.
	stepping atomic.Int64
	// The field took is set when the filter has selected a message. The field skipping is set when the warning was
	// logged that the filter selects no message. Only the loop uses took and skipping.
	took, skipping bool
	left           []semel.Unfinished // guarded by mutex
	// If lined is true, messages wait in the inbox until earlier messages of their key or lane have ended.
	lined    bool
	canaries canaries
}

// Parts are the objects that an engine uses.
type Parts[Tx any] struct {
	Store    runner.Store
	Runner   runner.Runner[Tx]
	FailOpen *runner.FailOpenPath // nil unless KeyPolicy.FailOpen is set
	Source   source.Source
	Info     source.Info // information about Source
	Handler  Handler[Tx]
	Scopes   *scopes.Cache[Tx]
	Reporter *Reporter
	Control  *control.Control // nil if the store has no controls
	Turns    upkeep.Turns
	Inbox    *inbox.Inbox // nil if the store has no inbox
	// ByCalls means that the messages are passed by calls of Process.
	ByCalls bool
	// InboxOnly means that the run processes the due rows of the inbox and then ends.
	InboxOnly bool
}

// New returns the engine of one run.
func New[Tx any](c *Config, parts Parts[Tx]) *Engine[Tx] {
	e := &Engine[Tx]{
		Parts: parts, config: c,
		machine: machine.New(c.Machine),
		began:   time.Now(),
		// Every sender except a lane has at most one event in the channel events. A lane waits until the channel has
		// space or the run ends.
		events: make(chan machine.Event, 2*c.Machine.Workers+8),
		gaveUp: make(chan struct{}), lined: parts.Inbox != nil && (c.Lines.ByKey || c.Lines.ByLane),
	}
	e.canaries.oneIn = uint64(c.Canary)
	if e.Inbox != nil {
		e.Inbox.Since = e.began
	}
	if c.Recorder != nil {
		e.recording = c.Recorder.Begin(c.Consumer, e.machine, c.Machine, e.began)
	}
	if notifier, ok := e.Store.(admin.Notifier); ok && e.Inbox != nil && !e.InboxOnly {
		e.bell = notify.New(c.Consumer, c.Logger, c.Poll, notifier)
	}
	e.recheck = schema.New(e.Store, e.Scopes.Forget, e.began)
	e.base, e.cancel = context.WithCancel(context.WithValue(context.Background(), resultContextKey{}, e.resultContext()))
	ages := new(upkeep.LaneAges)
	e.upkeep(ages)
	e.intake = &intake{config: c, source: e.Source, info: e.Info, reaper: e.reaper, ages: ages, orders: make(chan machine.Fetch, 1), reporter: e.Reporter}
	if !e.ByCalls { // Process returns messages instead of waiting until the consumer is resumed
		e.intake.control = e.Control
	}
	e.settler = newSettler(e.Source, c, e.results)
	e.settler.emit = e.emit
	e.lanes = &laneEvents{reporter: e.Reporter, ages: ages, events: e.events, over: e.base.Done(), waiting: map[source.Lane]chan struct{}{}}
	for range c.Machine.Workers {
		e.pilots = append(e.pilots, &pilot[Tx]{engine: e, orders: make(chan machine.Action, 1)})
	}
	return e
}

// upkeep creates the reaper, which removes old markers, and the sealer, which adds records to the audit chain. A run
// that only processes the inbox has no reaper and no sealer.
func (e *Engine[Tx]) upkeep(ages *upkeep.LaneAges) {
	if e.InboxOnly {
		return
	}
	if reaper, able := e.Store.(store.Reaper); able {
		e.reaper = upkeep.NewReaper(upkeep.ReaperOptions{
			Retention: e.config.Retention, Store: reaper, Turns: e.Turns, Info: e.Info, ByCalls: e.ByCalls, Lanes: ages,
			Ready: e.Reporter.State, InFlight: func() int64 { return e.Snapshot().InFlight },
		})
	}
	if auditor, able := e.Store.(admin.Auditor); able {
		e.sealer = &upkeep.Sealer{Guard: e.config.Guard, Store: auditor, Turns: e.Turns, Key: e.config.AuditKey}
	}
}

func (e *Engine[Tx]) tasks() (tasks []*upkeep.Task) {
	if e.reaper != nil {
		tasks = append(tasks, e.reaper.Task())
	}
	if e.sealer != nil {
		tasks = append(tasks, e.sealer.Task())
	}
	return tasks
}

// LimitToRows limits a run to the given rows of the inbox. If rows is empty, the run claims all due rows. Call
// LimitToRows before Run.
func (e *Engine[Tx]) LimitToRows(rows []int64) { e.Inbox.Only = rows }

// Unfinished returns the lanes that still had messages when the run ended because it was idle.
func (e *Engine[Tx]) Unfinished() []semel.Unfinished {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return slices.Clone(e.left)
}

// Run works until the machine is done. To stop, Run first lets the machine drain. Next, Run stops the fetcher, the
// workers and the settler, and waits for them. Finally, Run closes the source.
func (e *Engine[Tx]) Run(ctx context.Context) error {
	defer e.cancel()
	e.timer = time.NewTimer(time.Hour)
	defer e.timer.Stop()
	if err := e.config.Source("Lanes", func() error { e.Source.Lanes(e.lanes); return nil }); err != nil {
		return fmt.Errorf("semel: consumer %s: %w", e.config.Consumer, err)
	}
	e.logStart()
	e.group.Keep(func() { e.intake.work(e.base, e.events) })
	e.group.Keep(func() { e.settler.work(e.base, e.events) })
	if e.Inbox != nil {
		e.group.Keep(func() { e.Inbox.Work(e.base, e.events) })
		e.group.Keep(func() { e.Inbox.Keeper.Work(e.base) })
	}
	if e.bell != nil {
		e.group.Keep(func() { e.bell.Send(e.base) })
		e.group.Keep(func() { e.bell.Listen(e.base) })
	}
	if tasks := e.tasks(); len(tasks) > 0 {
		e.group.Keep(func() { upkeep.Run(e.base, tasks) })
	}
	if e.Control != nil {
		e.group.Keep(func() { e.Control.Watch(e.base) })
	}
	for _, p := range e.pilots {
		e.crew.Keep(p.work)
	}
	e.loop(ctx)
	e.recordLoopEnd()
	err := e.shutDown()
	e.logEnd(err)
	return err
}

func (e *Engine[Tx]) loop(ctx context.Context) {
	stop, gaveUp := ctx.Done(), e.gaveUp
	notified := e.bell.Heard() // notifications of other processes
	var patience <-chan time.Time
	var event machine.Event = machine.Timer{}
	for {
		now := time.Since(e.began)
		actions := e.step(event, now)
		// The counts are updated before the machine's actions are carried out. So when an observer learns that a
		// message has ended, the counts include that message.
		e.recordLoad(now)
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

// noteBehind ends the run if the source reports semel.ErrBehind. A later run gets the messages again that were not
// acked.
func (e *Engine[Tx]) noteBehind(event machine.Event) {
	if f, ok := event.(machine.Fetched); ok && e.behindErr == nil && errors.Is(f.Err, semel.ErrBehind) {
		e.behindErr = f.Err
		close(e.gaveUp)
	}
}

func (e *Engine[Tx]) carryOut(a machine.Action) {
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
		e.Reporter.settled(a)
		e.bell.Settled(a)
		e.settler.add(a)
	case machine.Over:
		e.Reporter.ended(&a.Settlement)
	case machine.ClaimRows:
		e.Inbox.Ask(a)
	case machine.Unclaim:
		e.Inbox.Free(a)
	case machine.Flow:
		e.flow(a)
	case machine.Release:
		e.lanes.release(a.Lane)
	case machine.Wake:
		e.timer.Reset(max(0, a.At-time.Since(e.began)))
	case machine.Report:
		e.Reporter.Report(a)
	case machine.Done:
		e.done = &a
		e.Reporter.Done(a)
	}
}

func (e *Engine[Tx]) Snapshot() semel.Counts {
	e.mutex.Lock()
	c := e.counts
	e.mutex.Unlock()
	reEmitted, notReEmitted := e.Reporter.Intents()
	out := semel.Counts{
		Deliveries: c.Deliveries, Applied: c.Applied, Duplicates: c.Duplicates, Conflicts: c.Conflicts, Parked: c.Parked,
		DeadLettered: c.DeadLettered, Discarded: c.Discarded, Skipped: c.Skipped, Failed: c.Failed, Retried: c.Retried, Rerun: c.Rerun,
		SameContent: e.Reporter.SameContent(), WithoutKey: e.FailOpen.Count(), ReEmitted: reEmitted, NotReEmitted: notReEmitted, Received: c.Received, Waiting: c.Waiting, Inbox: semel.InboxCounts(c.Claims),
	}
	out.InFlight = out.Deliveries - out.Applied - out.Duplicates - out.Conflicts - out.Parked - out.DeadLettered - out.Discarded - out.Skipped - out.Received - out.Waiting - out.Failed
	return out
}

// flow pauses or resumes a lane. If the source panics in Flow, the lane keeps delivering until MaxUnacked is
// reached.
func (e *Engine[Tx]) flow(a machine.Flow) {
	_ = e.config.Source("Flow", func() error { e.Source.Flow(source.Lane(a.Lane), a.On); return nil })
}
