package semel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/worker"
)

// engine carries out the machine's actions for one run of a consumer. A message
// passes its files in this order: intake.go (fetch, identity), flight.go
// (begin, run, commit), settler.go. The loop below owns the machine; everything
// else reports to it through events.
type engine[Tx any] struct {
	config  Config
	store   TxStore[Tx]
	source  Source
	handler handler[Tx]
	scopes  *scopes[Tx]

	machine *machine.Machine
	began   time.Time
	events  chan machine.Event
	group   worker.Group // fetcher and settler
	crew    worker.Group // pilots
	// base ends when the run is over; what runs beside the loop derives from it.
	base   context.Context
	cancel context.CancelFunc

	intake  *intake
	pilots  []*pilot[Tx]
	settler *settler
	lanes   *laneDesk
	timer   *time.Timer
	notes   *notes
	done    *machine.Done

	mutex  sync.Mutex
	counts machine.Counts // guarded by mutex
}

func newEngine[Tx any](c *Consumer[Tx], source Source) *engine[Tx] {
	e := &engine[Tx]{
		config: c.config, store: c.store, source: source, handler: c.handler, scopes: c.scopes,
		machine: machine.New(machineConfig(c.config, c.oneAttempt)),
		began:   time.Now(),
		// Every sender below has at most one event under way, except lanes,
		// which wait for room or for the run's end.
		events: make(chan machine.Event, 2*c.config.Workers+8),
		notes:  c.notes,
	}
	e.base, e.cancel = context.WithCancel(context.Background())
	e.intake = &intake{config: c.config, source: source, orders: make(chan machine.Fetch, 1)}
	e.settler = newSettler(source, c.config)
	e.lanes = &laneDesk{events: e.events, over: e.base.Done(), waiting: map[machine.Lane]chan struct{}{}}
	for range c.config.Workers {
		e.pilots = append(e.pilots, &pilot[Tx]{engine: e, orders: make(chan machine.Action, 1)})
	}
	return e
}

// run works until the machine is done. The order of stopping: the machine
// drains; then fetcher, pilots and settler are told to end and waited for; then
// the source is closed.
func (e *engine[Tx]) run(ctx context.Context) error {
	defer e.cancel()
	e.timer = time.NewTimer(time.Hour)
	defer e.timer.Stop()
	e.source.Lanes(e.lanes)
	e.group.Go(func() { e.intake.work(e.base, e.events) })
	e.group.Go(func() { e.settler.work(e.base, e.events) })
	for _, p := range e.pilots {
		e.crew.Keep(p.work)
	}
	e.loop(ctx)
	return e.shutDown()
}

func (e *engine[Tx]) loop(ctx context.Context) {
	stop := ctx.Done()
	var event machine.Event = machine.Timer{}
	for {
		actions := e.machine.Step(event, time.Since(e.began))
		// Before they are carried out: who hears of a settlement finds it counted.
		e.mutex.Lock()
		e.counts = e.machine.Counts()
		e.mutex.Unlock()
		for _, a := range actions {
			e.carryOut(a)
		}
		if e.done != nil {
			return
		}
		select {
		case event = <-e.events:
		case <-e.timer.C:
			event = machine.Timer{}
		case <-stop:
			stop, event = nil, machine.Stop{}
		}
	}
}

func (e *engine[Tx]) carryOut(a machine.Action) {
	switch a := a.(type) {
	case machine.Fetch:
		e.intake.order(a)
	case machine.CancelFetch:
		e.intake.cancelFetch()
	case machine.Begin:
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
		e.notes.settled(a)
		e.settler.add(a)
	case machine.Flow:
		e.source.Flow(Lane(a.Lane), a.On)
	case machine.Release:
		e.lanes.release(a.Lane)
	case machine.Wake:
		e.timer.Reset(max(0, a.At-time.Since(e.began)))
	case machine.Report:
		e.notes.report(a)
	case machine.Done:
		e.done = &a
		e.notes.done(a)
	}
}

// leaveAfter is how long a run that is over waits for what it has cancelled.
const leaveAfter = 5 * time.Second

func (e *engine[Tx]) shutDown() error {
	e.cancel()
	for _, p := range e.pilots {
		close(p.orders)
	}
	crew, group := e.crew.WaitFor(leaveAfter), e.group.WaitFor(leaveAfter)
	ctx, cancel := context.WithTimeout(context.Background(), leaveAfter)
	defer cancel()
	err := e.source.Close(ctx)
	if err != nil {
		err = fmt.Errorf("semel: closing the source: %w", err)
	}
	if !crew {
		err = errors.Join(err, e.stuck())
	}
	if !group {
		err = errors.Join(err, fmt.Errorf("semel: consumer %s: the source's Fetch or Settle ignores its context and still runs; what it has not settled comes again", e.config.Name))
	}
	if e.done.Halted {
		p := e.done.Item.Handle.(*parcel)
		err = errors.Join(&haltError{key: p.key, reason: Reason(e.done.Reason), err: e.done.Err}, err)
	}
	return err
}

// stuck says what still runs although the run is over.
func (e *engine[Tx]) stuck() error {
	var err error
	handlers := 0
	for _, p := range e.pilots {
		switch {
		case p.committing.Load():
			err = fmt.Errorf("semel: consumer %s: a commit did not end in time and its outcome is unknown; its messages are unsettled, come again, and are then judged by their markers", e.config.Name)
		case p.handling.Load():
			handlers++
		}
	}
	if handlers > 0 {
		err = errors.Join(err, fmt.Errorf("semel: consumer %s: %d handlers ignore their context and still run; their connections were cut and nothing of them is committed", e.config.Name, handlers))
	}
	if err == nil {
		err = fmt.Errorf("semel: consumer %s: the store ignores its context and still works; nothing of it is settled", e.config.Name)
	}
	return err
}

func (e *engine[Tx]) snapshot() Counts {
	e.mutex.Lock()
	c := e.counts
	e.mutex.Unlock()
	out := Counts{
		Deliveries: c.Deliveries, Applied: c.Applied, Duplicates: c.Duplicates, Conflicts: c.Conflicts, Parked: c.Parked,
		DeadLettered: c.DeadLettered, Discarded: c.Discarded, Failed: c.Failed, Retried: c.Retried, Rerun: c.Rerun,
	}
	out.InFlight = out.Deliveries - out.Applied - out.Duplicates - out.Conflicts - out.Parked - out.DeadLettered - out.Discarded - out.Failed
	return out
}

// haltError says which message halted a consumer.
type haltError struct {
	key    Key
	reason Reason
	err    error
}

func (e *haltError) Error() string {
	text := fmt.Sprintf("consumer %s halted by message %q of source %q: %s", e.key.Consumer, e.key.ID, e.key.Source, e.reason)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text + "; it is unsettled and comes again at the next start"
}

func (e *haltError) Unwrap() []error { return []error{ErrHalted, e.err} }

// laneDesk passes what a source says of lanes to the machine.
type laneDesk struct {
	events chan<- machine.Event
	over   <-chan struct{}

	mutex   sync.Mutex
	waiting map[machine.Lane]chan struct{} // guarded by mutex
}

func (d *laneDesk) send(e machine.Event) {
	select {
	case d.events <- e:
	case <-d.over:
	}
}

func (d *laneDesk) Given(l Lane) { d.send(machine.Given{Lane: machine.Lane(l)}) }

func (d *laneDesk) Lost(l Lane) {
	d.send(machine.Lost{Lane: machine.Lane(l)})
	d.release(machine.Lane(l))
}

func (d *laneDesk) Revoking(ctx context.Context, l Lane) {
	released := make(chan struct{})
	d.mutex.Lock()
	d.waiting[machine.Lane(l)] = released
	d.mutex.Unlock()
	d.send(machine.Revoking{Lane: machine.Lane(l)})
	select {
	case <-released:
	case <-ctx.Done():
	case <-d.over:
	}
}

func (d *laneDesk) release(l machine.Lane) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if released := d.waiting[l]; released != nil {
		close(released)
		delete(d.waiting, l)
	}
}

func machineConfig(c Config, oneAttempt bool) machine.Config {
	lanes := machine.Partition
	if c.Lanes == LanesNone || oneAttempt {
		lanes = machine.NoOrder
	}
	return machine.Config{
		Lanes: lanes, Workers: c.Workers, Most: c.Batch.Most, BatchTime: c.Batch.Time, Hold: c.Hold,
		MaxMessages: c.MaxUnsettled.Messages, MaxBytes: c.MaxUnsettled.Bytes, Drain: c.Drain,
		Attempts: c.Retry.Attempts, RetryFirst: c.Retry.First, RetryMost: c.Retry.Most, RetryThen: machine.Then(c.Retry.Then),
		OnConflict: machine.Then(c.OnConflict), OnRefused: machine.Then(c.OnBadIdentity), OnUnmet: machine.Then(c.OnUnmet),
		IdleExit: c.IdleExit, BackoffFirst: 50 * time.Millisecond, BackoffMost: 5 * time.Second, SerialFor: time.Minute,
		Unmarked: c.Strategy != StrategyMarker, OneAttempt: oneAttempt, Seed: c.Seed,
	}
}
