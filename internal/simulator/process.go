package simulator

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
)

// Stepper has the methods of a machine that the simulator uses.
type Stepper interface {
	Step(machine.Event, machine.Time) []machine.Action
	Counts() machine.Counts
	Unsettled() (messages int, bytes int64)
	Size() machine.Size
}

// Maker creates the machine of a process.
type Maker func(machine.Config) Stepper

// Real is the Maker of the real machine.
func Real(c machine.Config) Stepper { return machine.New(c) }

// process is one process in the simulated world: a machine with a simulated consumer around it. A process that ends is
// replaced by a new process.
type process struct {
	w       *world
	seat    int
	machine Stepper
	config  machine.Config
	started time.Duration
	// version is the version of the rule for fingerprints.
	version uint8
	// names contains the names of the steps, or is nil if messages have no steps.
	names   []string
	flights []*flight // batches in progress
	last    *flight   // the last batch that ended
	fetch   *fetching
	wake    uint64 // number of the last Wake; earlier Wakes are ignored
	steps   int    // number of steps of this process
	settles int    // number of Settle actions without a response
	leaving bool   // true if the process will be stopped because all messages are acked
	over    bool
	died    bool // true if the process has crashed
	// generation is the generation that the process believes to be active.
	generation int
	frozen     bool
	late       []func() // events that wait for the end of the freeze
	ending     machine.Done
	inbox      claiming
	check      checker
}

// fetching is a Fetch in progress.
type fetching struct {
	most      machine.Fetch
	cancelled bool
	ends      bool // if cancelled: after the Fetch the process would end because it is idle
	answering bool
	asking    bool // if answering: the source was asked whether it has more messages
}

func newProcess(w *world, seat int) *process {
	c := w.Plan.Config
	if w.calm || w.halts > 1 {
		c = plan.Calmed(c)
	}
	p := &process{w: w, seat: seat, generation: w.activeGeneration, config: c, started: w.now, version: w.drawRule(), names: w.stepNames(), machine: w.make(c)}
	p.check = checker{p: p, w: w, lanes: map[source.Lane]*laneState{}, pauses: map[int]pause{}, keys: map[uint64]*machine.Flight{}}
	p.check.retries.balance, p.check.retries.balanceTime = c.RetrySaved, w.now
	p.check.recordGiven(machine.InboxLane())
	p.check.outage()
	p.schedule(w.choices.Wait(w.Plan.Lag), func() { p.feed(machine.Timer{}) })
	if c.Inbox {
		p.keepLeases()
	}
	return p
}

// time returns the current time of the machine's clock.
func (p *process) time() machine.Time { return p.w.now - p.started }

// schedule schedules a function of the process. If the process ends first, the function does not run.
func (p *process) schedule(wait time.Duration, do func()) {
	p.w.schedule(wait, func() { p.runWhenThawed(do) })
}

// runWhenThawed runs a function of the process: at once or, if the process is frozen, after the thaw.
func (p *process) runWhenThawed(do func()) {
	switch {
	case p.over:
	case p.frozen:
		p.late = append(p.late, do)
	default:
		do()
	}
}

// scheduleSoon schedules a function of the process after the duration of a call.
func (p *process) scheduleSoon(do func()) { p.schedule(p.w.choices.Wait(p.w.Plan.Lag), do) }

// feed passes an event to the machine and performs the actions that the machine returns.
func (p *process) feed(e machine.Event) { p.feedAt(e, "") }

// feedAt does the same as feed, but the process may crash at a fault point between the decision of the machine and its
// actions.
func (p *process) feedAt(e machine.Event, at faults.Point) {
	w := p.w
	if p.over || w.law != nil {
		return
	}
	w.steps++
	p.steps++
	w.still++
	if e, asked := e.(machine.Claimed); asked && len(e.Items) == 0 && !e.Failed {
		p.steps -= 2 // the checker limits how often the machine may ask
	}
	if p.steps > w.mostSteps || w.still > mostStill {
		w.broke("law 11", "it spins: %d steps of one life, %d of them in one moment", p.steps, w.still)
		return
	}
	p.check.checkEvent(e)
	actions, fault := p.step(e)
	if fault != "" {
		w.broke("panic", "%s", fault)
	}
	w.coverage.AddStep(e, actions)
	if x, ok := e.(machine.Ended); ok {
		p.coverEnded(x)
	}
	if w.history != nil {
		w.history.Step(w.now, p.historyPrefix(), e, actions)
	}
	if at != "" && p.diesAt(at) {
		return
	}
	for _, a := range actions {
		if w.law != nil {
			return
		}
		p.check.checkAction(a)
		if w.law == nil {
			p.perform(a)
		}
	}
	p.check.checkAfterEvent(e)
}

// step calls Step of the machine. If Step panics, the result fault is the text of the panic.
func (p *process) step(e machine.Event) (actions []machine.Action, fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	return p.machine.Step(e, p.time()), ""
}

// perform carries out an action of the machine.
func (p *process) perform(a machine.Action) {
	switch a := a.(type) {
	case machine.Fetch:
		p.fetch = &fetching{most: a}
		p.w.poke()
	case machine.CancelFetch:
		p.cancelFetch(a)
	case machine.Begin:
		p.beginBatch(a)
	case machine.Run:
		p.find(a.Flight).run(a)
	case machine.StopRun:
		p.find(a.Flight).stopRun(a.Abort)
	case machine.Commit:
		p.find(a.Flight).commit(a)
	case machine.Rollback:
		p.find(a.Flight).rollback()
	case machine.Kill:
		p.find(a.Flight).kill()
	case *machine.Settle:
		p.settle(a)
	case machine.ClaimRows:
		p.claimRows(a)
	case machine.Over:
		p.scheduleSoon(p.w.wrapUp)
	case machine.Unclaim:
		p.unclaim(a)
	case machine.Flow:
		p.w.flow(a)
	case machine.Release:
		p.w.release(a.Lane)
	case machine.Wake:
		p.setTimer(a.At)
	case machine.Done:
		p.ending = a
		p.w.handleDone(p)
	}
}

// setTimer sets the time of the next Wake. The previous timer is dropped.
func (p *process) setTimer(at machine.Time) {
	p.wake++
	number := p.wake
	p.schedule(max(at-p.time(), 0), func() {
		if p.wake == number {
			p.feed(machine.Timer{})
		}
	})
}

// find returns the open batch that belongs to a machine.Flight.
func (p *process) find(of *machine.Flight) *flight {
	for _, f := range p.flights {
		if f.of == of {
			return f
		}
	}
	return nil
}

// historyPrefix returns a prefix for lines of the history: the names of the process and of its world (the simulated
// consumer). The prefix has no process name if there is only one process, and no world name if there is only one world.
func (p *process) historyPrefix() (whose string) {
	if len(p.w.seats) > 1 {
		whose = fmt.Sprintf("process %d: ", p.seat+1)
	}
	if p.w.live != nil {
		whose = "rebuild, " + whose
	}
	if p.w.main != nil {
		whose = "sender, " + whose
	}
	return whose
}

// coverEnded counts the transitions of a batch that ended. A transition consists of the outcome of an entry, the answer
// of the store, and the end of the batch.
func (p *process) coverEnded(x machine.Ended) {
	f := p.last
	if f == nil || f.of != x.Flight {
		return
	}
	for i, e := range x.Flight.Entries {
		p.w.coverage.Add("transition", trace.ClaimWord(e)+trace.Word(trace.AsNames[:], e.As)+", "+f.verdicts[i].String()+", "+x.Outcome.String())
	}
}

// String returns the name of the delivery or claim in the text of a run's history.
func (h *itemState) String() string {
	m := h.delivery.Message
	if c := h.claim; c != nil {
		return fmt.Sprintf("%s(%s)@inbox:%d", m.Name(), c.Row.Key.ID, c.Token())
	}
	return fmt.Sprintf("%s(%s)@%s:%d", m.Name(), m.ID, trace.Lane(h.item.Lane), h.delivery.Position)
}

// begin starts a process with a new machine. The store and the source keep their state.
func (w *world) begin(seat int) {
	if w.seats[seat] != nil || w.finished || w.over {
		return
	}
	w.lives++
	w.seats[seat] = newProcess(w, seat)
	w.logLine("life %d begins", w.lives)
	for _, l := range w.Source.Lanes {
		switch {
		case !w.calm && w.Plan.Late:
			w.recordFault("lanes are late", "")
			w.schedule(58*time.Second+w.choices.Wait(10*time.Second), func() { w.give(l) })
		case w.calm || w.choices.Often(6):
			w.give(l)
		default:
			w.schedule(w.choices.Wait(w.Plan.Span/4), func() { w.give(l) })
		}
	}
	w.wrapUp()
}

// living returns all processes that have not ended, including frozen ones.
func (w *world) living() []*process {
	w.there = w.there[:0]
	for _, p := range w.seats {
		if p != nil && !p.over {
			w.there = append(w.there, p)
		}
	}
	return w.there
}

// someone returns a random process, or nil if no process runs.
func (w *world) someone() *process {
	if there := w.living(); len(there) > 0 {
		return there[w.choices.Below(len(there))]
	}
	return nil
}

// give assigns a free lane to one of the processes.
func (w *world) give(l *model.Lane) {
	takers := w.takers(l)
	if len(takers) == 0 || l.Held {
		return
	}
	p := takers[w.choices.Below(len(takers))]
	l.Give(p)
	gone := l.Current()
	p.runWhenThawed(func() {
		p.check.recordGiven(gone)
		p.feed(machine.Given{Lane: gone})
	})
	w.poke()
}

// revoke asks the process that has a lane to release it. After a deadline, the lane is taken away.
func (w *world) revoke(l *model.Lane) {
	if !l.Held || l.Revoking {
		return
	}
	l.Revoking = true
	p, gone := l.Owner.(*process), l.Current()
	deadline := w.choices.Wait(4 * time.Second)
	w.recordFault("lane revoked", "%s, for %v", l.ID, deadline)
	p.runWhenThawed(func() { p.feed(machine.Revoking{Lane: gone}) })
	w.schedule(deadline, func() {
		if l.Held && l.Current() == gone {
			w.recordFault("revocation ran out", "%s", l.ID)
			w.lose(l)
		}
	})
}

// lose takes a lane away from its process immediately.
func (w *world) lose(l *model.Lane) {
	if !l.Held {
		return
	}
	p, gone := l.Owner.(*process), l.Current()
	l.Leave()
	if !w.calm && !p.frozen && w.choices.Chance(4) {
		// The lane is assigned again before the previous process learns that the lane was lost.
		p.check.checkLost(gone)
		w.give(l)
		if l.Owner == p {
			return
		}
	}
	p.runWhenThawed(func() {
		p.check.checkLost(gone)
		p.feed(machine.Lost{Lane: gone})
	})
	w.giveAgain(l)
}

// release releases a lane when the machine has responded to a revocation.
func (w *world) release(gone source.Lane) {
	l := w.Source.Find(gone.ID)
	if l == nil || !l.Held || l.Current() != gone {
		return
	}
	p := l.Owner.(*process)
	l.Leave()
	// Some clients of brokers report a lane as lost even after the lane was released.
	if w.choices.Chance(3) {
		p.scheduleSoon(func() { p.feed(machine.Lost{Lane: gone}) })
	}
	w.giveAgain(l)
}

// giveAgain assigns the lane to a process after some time.
func (w *world) giveAgain(l *model.Lane) {
	wait := time.Microsecond
	if !w.calm {
		wait = w.choices.Wait(w.Plan.Span / 4)
	}
	w.schedule(wait, func() { w.give(l) })
}
