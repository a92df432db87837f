// Package simulator tests the machine. The package runs one or two real machines in a simulated world: a
// source with lanes, a store with transactions that the machines share, handlers that misbehave, and a virtual
// clock. All decisions depend on the seed, so a seed always gives the same history, byte for byte.
//
// A run has two phases. In the first phase faults happen: crashes at every point, lost replies, lanes that are assigned
// and revoked, a store that is slow or down, a process that is frozen and gets all events late. In the second phase no
// faults happen. The machines, restarted if necessary, must then ack or dead-letter every delivery.
//
// Some seeds also have replays: a separate process reads the history again, operators retry parked rows, or a rebuild
// fills a new generation, and the live processes switch to that generation. In other seeds, persons retry or discard
// several rows of one identity, or the store's clock is wrong by hours for some time.
//
// A checker compares each step with the laws of docs/internals/numbers.md. A violation names the law.
//
// Every decision is a number from chance.Choices, and zero always means the harmless decision. Shrink makes a history
// that breaks a law shorter: Shrink removes numbers from the list, or sets numbers to zero, as long as the law stays
// broken.
package simulator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/script"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// Result is the result of a run.
type Result struct {
	// Steps is the number of events of the machines. Faults is the number of faults. Lives is the number of started
	// processes.
	Steps, Faults, Lives int
	// Broken is the first violation of a law, or nil if no law was broken.
	Broken *Violation
	// History is the history of the run as text, or "" if Run was called without history.
	History  string
	Coverage trace.Coverage
	choices  []uint32
}

// Run simulates a seed, with machines that the function make creates. If the parameter history is true, the result has
// the history as text.
func Run(seed uint64, make Maker, history bool) Result {
	return simulate(chance.FromSeed(seed), make, history)
}

func simulate(c *chance.Choices, make Maker, keep bool) Result {
	w := newWorld(c, make)
	if keep {
		w.history = &trace.History{}
	}
	return w.runToEnd()
}

func newWorld(c *chance.Choices, make Maker) *world {
	return &world{shared: &shared{choices: c, coverage: trace.Coverage{}, mostSteps: mostSteps}, make: make}
}

// runToEnd runs the world until its end and returns the result of the run.
func (w *world) runToEnd() Result {
	w.start()
	w.run()
	r := Result{Steps: w.steps, Faults: w.faults, Lives: w.lives, Broken: w.law, Coverage: w.coverage, choices: slices.Clone(w.choices.Used())}
	if w.history != nil {
		r.History = w.history.Text.String()
	}
	return r
}

// Shrink looks for a shorter run that breaks the same law as the run of the seed. Shrink makes at most tries attempts,
// and returns the shortest run and the number of decisions in that run.
func Shrink(seed uint64, make Maker, tries int) (Result, int) {
	first := Run(seed, make, false)
	if first.Broken == nil {
		return first, len(first.choices)
	}
	best := chance.Shrink(first.choices, tries, func(list []uint32) (used []uint32, cost int, breaks bool) {
		w := newWorld(chance.FromList(list), make)
		w.mostSteps = 2*first.Steps + 100
		r := w.runToEnd()
		return r.choices, r.Steps / 2000, r.Broken != nil && r.Broken.Like(first.Broken)
	})
	return simulate(chance.FromList(best), make, true), len(best)
}

var _ Stepper = (*machine.Machine)(nil)

// Tail returns the last lines of a history.
func Tail(history string, lines int) string {
	all := strings.SplitAfter(history, "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], "")
}

// Violation describes how a run broke a law.
type Violation struct {
	// Law is the name of the law: "law 2", "protocol", ...
	Law string
	// Text describes what the checker saw.
	Text string
	// format is the format string of Text, which Like compares.
	format string
}

// Like reports whether two violations are of the same kind: their texts differ only in details.
func (v *Violation) Like(other *Violation) bool { return v.format == other.format }

func (v *Violation) Error() string { return v.Law + ": " + v.Text }

// shared is the state that all worlds of a run share: the worlds of the consumer, of its sender and of a
// rebuild.
type shared struct {
	choices  *chance.Choices
	agenda   chance.Agenda
	now      time.Duration
	history  *trace.History
	coverage trace.Coverage

	steps, faults, lives int
	mostSteps            int // limit for one process
	// still is the number of steps since virtual time last passed.
	still int
	calm  bool
	quiet bool // true if no more faults begin; a fault without an end continues
	// calmEnds is the time by which the run must have ended.
	calmEnds time.Duration
	finished bool
	armed    crash
	law      *Violation
}

// world simulates one consumer's processes and everything around their state machines (machine.Machine): the store, the
// source and the handlers.
type world struct {
	*shared
	script.Script
	make     Maker
	store    *model.Store
	provider *provider
	seats    []*process // nil if a process has ended and the next has not started
	there    []*process // the last result of living
	halts    int        // number of processes that a message has halted
	tokens   uint64
	// inboxLane is the lane to which claimed messages belong, for the checker.
	inboxLane *model.Lane
	// ledger has, for each stream, the last version that took effect or was skipped.
	ledger map[string]int64

	// The field sender is the world of the consumer that sends the intents, or nil if there is none. In the world of a
	// sender, the field main is the world that writes the intents. The field over is true if the world has ended.
	sender, main *world
	over         bool
	// For the checker, ids maps causes to the ids of their intents, causes maps these ids to causes, and past has the
	// identities that took effect outside of the run's processes.
	ids    map[intentKey]string
	causes map[string]intentKey
	past   map[string]bool

	// The field replay is the state of the replay. The field acts contains the audit records of persons' actions. The
	// field tookBy maps the number of a message to the identity under which the message took effect (for the checker).
	replay replay
	generations
	acts      []act
	operating operating
	tookBy    map[int]string
	// passedBy has the identities of the deliveries that are hidden from the live processes.
	passedBy map[string]bool
}

// Limits for one process. A machine that exceeds the limits is in an endless loop. The number of processes has no
// limit: a machine that ends idle while messages wait for a newer release starts again every half second, for minutes,
// and gets the whole log each time.
const (
	mostSteps = 60_000
	mostStill = 5_000
)

// broke records the violation of a law. Only the first violation of a run counts.
func (w *world) broke(law, format string, args ...any) {
	if w.law == nil {
		w.law = &Violation{law, fmt.Sprintf(format, args...), format}
		w.logLine("BROKEN %v", w.law)
	}
}

// logLine adds a line to the history.
func (w *world) logLine(format string, args ...any) {
	if w.history != nil {
		w.history.Line(w.now, "    "+format, args...)
	}
}

// recordFault counts a simulated fault, and adds a line to the history.
func (w *world) recordFault(name, format string, args ...any) {
	w.faults++
	w.coverage.Add("fault", name)
	if w.history != nil {
		w.history.Line(w.now, "  ! "+name+" "+format, args...)
	}
}

// hurt draws whether a fault of the given kind happens now.
func (w *world) hurt(kind plan.Trouble) bool {
	return !w.calm && !w.quiet && w.Plan.Has[kind] && w.choices.Chance(w.Plan.Rate)
}

// schedule calls the function do after a delay.
func (w *world) schedule(wait time.Duration, do func()) { w.agenda.Add(w.now+wait, do) }

// arose counts a situation in which the law could have been broken. If no run has a situation in which a law could be
// broken, the law was not tested (trap T107).
func (w *world) arose(law string) { w.coverage.Add("law", law) }

// run processes the events of the agenda until the end of the run, or until a law is broken.
func (w *world) run() {
	for w.law == nil && !w.finished {
		if w.agenda.Len() == 0 {
			w.broke("law 11", "nothing will ever happen again, and %s", w.unfinished())
			return
		}
		next := w.agenda.Take()
		if next.At > w.now {
			w.now, w.still = next.At, 0
		}
		if w.calm && w.now > w.calmEnds {
			w.broke("liveness", "%v after the last fault %s", w.now-w.Plan.Span, w.unfinished())
			return
		}
		next.Do()
	}
}

// unfinished returns a text about the messages that are not acked.
func (w *world) unfinished() string {
	if w.over && w.sender != nil {
		return "of the sender: " + w.sender.unfinished()
	}
	for _, l := range w.Source.Lanes {
		for _, d := range l.Log {
			if !d.Settled {
				return fmt.Sprintf("%s at %s/%d (%s) is not settled", d.Message.Name(), l.ID, d.Position, trace.Word(model.ConductNames[:], d.Message.Conduct))
			}
		}
	}
	for _, r := range w.store.Inbox {
		if r.Waits() {
			return fmt.Sprintf("the row of %s waits, claimed: %v", r.Key.ID, r.Token != 0)
		}
	}
	if len(w.living()) > 0 {
		return "everything is settled, but the machine has not ended"
	}
	return "everything is settled"
}

// allDone reports whether all messages in the source are acked and all messages in the inbox have ended.
func (w *world) allDone() bool { return w.Source.AllSettled() && !w.store.AnyWaits() && !w.goesOnFor() }

// start draws the plan, calls open, and schedules the first events.
func (w *world) start() {
	w.Plan = plan.Draw(w.choices)
	w.open()
	w.DrawMessages()
	w.drawHistory()
	w.DrawKeys()
	w.drawPast()
	for _, l := range w.Source.Lanes {
		for _, d := range l.Log {
			w.agenda.Add(d.Produced, func() { w.poke() })
		}
	}
	w.drawIntents()
	for _, each := range w.worlds() {
		for seat := range each.seats {
			each.begin(seat)
		}
	}
	w.deploy()
	w.agenda.Add(w.Plan.Span, w.endure)
	for _, each := range w.worlds() {
		w.schedule(w.choices.Wait(w.Plan.Span/4), each.disturb)
	}
	w.reap()
	w.readsAgain()
	w.operators()
	w.rebuilds()
	w.wrongClocks(3)
	if w.actsOnTwins(); w.Plan.Twins {
		w.store.Over = w.endOver
	}
}

// open creates the source, the store and the processes of the plan.
func (w *world) open() {
	w.Random, w.Counts = w.choices, w.coverage
	w.Source = &model.Source{Queue: w.Plan.Queue, Dead: map[model.Content]int{}}
	for i := range w.Plan.Lanes {
		w.Source.Lanes = append(w.Source.Lanes, &model.Lane{ID: string(rune('A' + i))})
	}
	w.provider = newProvider()
	w.store, w.ledger = model.NewStore(), map[string]int64{}
	w.ids, w.causes, w.past = map[intentKey]string{}, map[string]intentKey{}, map[string]bool{}
	w.tookBy, w.passedBy = map[int]string{}, map[string]bool{}
	w.inboxLane = &model.Lane{ID: machine.InboxLane().ID, Epoch: 1}
	w.seats = make([]*process, w.Plan.Processes)
}
