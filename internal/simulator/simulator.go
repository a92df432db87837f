// Package simulator proves the machine. It puts one or two real machines into a
// world that it makes up: a source with lanes, a store with transactions that
// they share, handlers that misbehave, and a clock of its own. A seed decides
// everything that could happen in more than one way, so that a seed always gives
// the same history, byte for byte.
//
// A run has two phases. In the first, faults happen: crashes at every point,
// lost replies, lanes that come and go, a store that is slow or dead, a process
// that is frozen and hears of everything late. In the second the world is calm
// and the machines, started again if they have to be, must bring every delivery
// to its end. In some seeds persons replay beside all that: a process of its own
// reads the history again, operators let run what was set aside, and a rebuild
// fills a generation of its own that the live processes are switched to. In others persons act
// on several rows of one identity, or the store's clock is hours ahead or behind for a while.
//
// A checker watches each step and holds it against the laws of
// docs/numbers.md; what breaks one names it.
//
// Every decision is a number drawn from choices, and zero is always the
// harmless one. A history that breaks a law is made short by taking numbers
// out of its list, or by making them zero, as long as the law stays broken.
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

// Result is what a run showed.
type Result struct {
	// Steps is how many events the machines took; Faults how many faults the
	// world made; Lives how many machines there were.
	Steps, Faults, Lives int
	// Broken is the law that was broken, nil if none was.
	Broken *Violation
	// History is what happened, if it was asked for.
	History  string
	Coverage trace.Coverage
	choices  []uint32
}

// Run simulates a seed with the machines that make makes. With history it
// keeps what happened as text.
func Run(seed uint64, make Maker, history bool) Result {
	return simulate(chance.FromSeed(seed), make, history)
}

func simulate(c *chance.Choices, make Maker, keep bool) Result {
	w := newWorld(c, make)
	if keep {
		w.history = &trace.History{}
	}
	return w.result()
}

func newWorld(c *chance.Choices, make Maker) *world {
	return &world{shared: &shared{choices: c, coverage: trace.Coverage{}, mostSteps: mostSteps}, make: make}
}

// result runs the world to its end.
func (w *world) result() Result {
	w.start()
	w.run()
	r := Result{Steps: w.steps, Faults: w.faults, Lives: w.lives, Broken: w.law, Coverage: w.coverage, choices: slices.Clone(w.choices.Used())}
	if w.history != nil {
		r.History = w.history.Text.String()
	}
	return r
}

// Shrink returns a run that breaks the same law as the seed's and is as short
// as it can be made with so many tries, and how many decisions it needs.
func Shrink(seed uint64, make Maker, tries int) (Result, int) {
	first := Run(seed, make, false)
	if first.Broken == nil {
		return first, len(first.choices)
	}
	best := chance.Shrink(first.choices, tries, func(list []uint32) (used []uint32, cost int, breaks bool) {
		w := newWorld(chance.FromList(list), make)
		w.mostSteps = 2*first.Steps + 100
		r := w.result()
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

// Violation is a law that a run broke.
type Violation struct {
	// Law names it: "law 2", "protocol", ...
	Law string
	// Text says what was seen.
	Text string
	// form is the text without its particulars, by which shrinking knows it.
	form string
}

// Like reports whether a run broke a law in the same way as another, particulars aside.
func (v *Violation) Like(other *Violation) bool { return v.form == other.form }

func (v *Violation) Error() string { return v.Law + ": " + v.Text }

// shared is what the world of the consumer and that of its sender have together.
type shared struct {
	choices  *chance.Choices
	agenda   chance.Agenda
	now      time.Duration
	history  *trace.History
	coverage trace.Coverage

	steps, faults, lives int
	mostSteps            int // of one life
	// still counts steps in which no time passed.
	still int
	calm  bool
	quiet bool // no more faults happen; those that have no end stay
	// calmEnds is when everything has to be over.
	calmEnds time.Duration
	finished bool
	armed    crash
	law      *Violation
}

// world is everything around the machine.
type world struct {
	*shared
	script.Script
	make     Maker
	store    *model.Store
	provider *provider
	seats    []*process // the processes; nil between two lives of one
	there    []*process // what living returned last
	halts    int        // lives that a message ended
	tokens   uint64
	// inboxLane is where the checker finds what was claimed.
	inboxLane *model.Lane
	// ledger is the last version of each stream that took effect, or was passed over.
	ledger map[string]int64

	// sender is the world of who sends the intents that are written in this one, main, of
	// a sender's, the other; nil: there is none. over: it has come to its end.
	sender, main *world
	over         bool
	// ids are those of intents, causes the same by id, past the identities to which others
	// gave their effect: the checker's.
	ids    map[cause]string
	causes map[string]cause
	past   map[string]bool

	// replay is the one that reads again what live processes have, acts what is recorded of
	// persons; tookBy is under which identity what a producer sent took effect, by its
	// number: the checker's.
	replay replay
	generations
	acts      []act
	operating operating
	tookBy    map[int]string
	// passedBy are the identities that stand before what live processes are given.
	passedBy map[string]bool
}

// Limits of one life. A machine that needs more does not come to an end. How many
// lives there are is bounded by time: one that ends idle with what a newer release
// marked begins again every half second, for minutes, and is given all of a log
// each time.
const (
	mostSteps = 60_000
	mostStill = 5_000
)

// broke records that a law is broken; the first one counts.
func (w *world) broke(law, format string, args ...any) {
	if w.law == nil {
		w.law = &Violation{law, fmt.Sprintf(format, args...), format}
		w.note("BROKEN %v", w.law)
	}
}

// note writes a line of the history that is no step.
func (w *world) note(format string, args ...any) {
	if w.history != nil {
		w.history.Line(w.now, "    "+format, args...)
	}
}

// fault counts and notes something that went wrong by design.
func (w *world) fault(name, format string, args ...any) {
	w.faults++
	w.coverage.Add("fault", name)
	if w.history != nil {
		w.history.Line(w.now, "  ! "+name+" "+format, args...)
	}
}

// hurt decides whether a fault of this kind happens now.
func (w *world) hurt(kind plan.Trouble) bool {
	return !w.calm && !w.quiet && w.Plan.Has[kind] && w.choices.Chance(w.Plan.Rate)
}

// after enters an occurrence.
func (w *world) after(wait time.Duration, do func()) { w.agenda.Add(w.now+wait, do) }

// arose counts that a law could have been broken here: a law whose situation
// never arose was not tested (trap T107).
func (w *world) arose(law string) { w.coverage.Add("law", law) }

// run lets things happen until the end or until a law is broken.
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

// unfinished tells what has not come to its end.
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

// allDone reports whether nothing is left, in the source or the inbox.
func (w *world) allDone() bool { return w.Source.AllSettled() && !w.store.AnyWaits() && !w.goesOnFor() }

// start sets the world up and enters what sets it going.
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
		w.after(w.choices.Wait(w.Plan.Span/4), each.disturb)
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

// open makes what a plan asks for.
func (w *world) open() {
	w.Random, w.Counts = w.choices, w.coverage
	w.Source = &model.Source{Queue: w.Plan.Queue, Dead: map[model.Content]int{}}
	for i := range w.Plan.Lanes {
		w.Source.Lanes = append(w.Source.Lanes, &model.Lane{ID: string(rune('A' + i))})
	}
	w.provider = newProvider()
	w.store, w.ledger = model.NewStore(), map[string]int64{}
	w.ids, w.causes, w.past = map[cause]string{}, map[string]cause{}, map[string]bool{}
	w.tookBy, w.passedBy = map[int]string{}, map[string]bool{}
	w.inboxLane = &model.Lane{ID: machine.InboxLane().ID, Epoch: 1}
	w.seats = make([]*process, w.Plan.Processes)
}
