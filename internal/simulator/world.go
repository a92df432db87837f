package simulator

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
)

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
	plan     plan.Plan
	make     Maker
	messages []*model.Message
	source   *model.Source
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

// Violation is a law that a run broke.
type Violation struct {
	// Law names it: "law 2", "protocol", ...
	Law string
	// Text says what was seen.
	Text string
	// form is the text without its particulars, by which shrinking knows it.
	form string
}

func (v *Violation) Error() string { return v.Law + ": " + v.Text }

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
	return !w.calm && !w.quiet && w.plan.Has[kind] && w.choices.Chance(w.plan.Rate)
}

// after enters an occurrence.
func (w *world) after(wait time.Duration, do func()) { w.agenda.Add(w.now+wait, do) }

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
			w.broke("liveness", "%v after the last fault %s", w.now-w.plan.Span, w.unfinished())
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
	for _, l := range w.source.Lanes {
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

// start sets the world up and enters what sets it going.
func (w *world) start() {
	w.plan = plan.Draw(w.choices)
	w.open()
	w.drawMessages()
	w.drawHistory()
	w.drawKeys()
	w.drawPast()
	for _, l := range w.source.Lanes {
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
	w.agenda.Add(w.plan.Span, w.endure)
	for _, each := range w.worlds() {
		w.after(w.choices.Wait(w.plan.Span/4), each.disturb)
	}
	w.reap()
	w.readsAgain()
	w.operators()
	w.rebuilds()
	w.wrongClocks(3)
	if w.actsOnTwins(); w.plan.Twins {
		w.store.Over = w.endOver
	}
}

// open makes what a plan asks for.
func (w *world) open() {
	w.source = &model.Source{Queue: w.plan.Queue, Dead: map[model.Content]int{}}
	for i := range w.plan.Lanes {
		w.source.Lanes = append(w.source.Lanes, &model.Lane{ID: string(rune('A' + i))})
	}
	w.provider = newProvider()
	w.store, w.ledger = model.NewStore(), map[string]int64{}
	w.ids, w.causes, w.past = map[cause]string{}, map[string]cause{}, map[string]bool{}
	w.tookBy, w.passedBy = map[int]string{}, map[string]bool{}
	w.inboxLane = &model.Lane{ID: machine.InboxLane().ID, Epoch: 1}
	w.seats = make([]*process, w.plan.Processes)
}

// begin starts a process: a new machine on what has survived.
func (w *world) begin(seat int) {
	if w.seats[seat] != nil || w.finished || w.over {
		return
	}
	w.lives++
	w.seats[seat] = newProcess(w, seat)
	w.note("life %d begins", w.lives)
	for _, l := range w.source.Lanes {
		switch {
		case !w.calm && w.plan.Late:
			w.fault("lanes are late", "")
			w.after(58*time.Second+w.choices.Wait(10*time.Second), func() { w.give(l) })
		case w.calm || w.choices.Often(6):
			w.give(l)
		default:
			w.after(w.choices.Wait(w.plan.Span/4), func() { w.give(l) })
		}
	}
	w.wrapUp()
}

// living returns the processes that are there, also those that are frozen.
func (w *world) living() []*process {
	w.there = w.there[:0]
	for _, p := range w.seats {
		if p != nil && !p.over {
			w.there = append(w.there, p)
		}
	}
	return w.there
}

// someone returns a process, nil if there is none.
func (w *world) someone() *process {
	if there := w.living(); len(there) > 0 {
		return there[w.choices.Below(len(there))]
	}
	return nil
}

// beCalm ends the faults. What is open in the store ends by itself.
func (w *world) beCalm() {
	w.calm = true
	w.calmEnds = w.now + w.patienceOfAll()
	w.note("calm")
	w.setClock(0)
	for _, each := range w.worlds() {
		each.store.Down = false
	}
	for _, each := range w.worlds() {
		each.everybody()
		each.poke()
		each.wrapUp()
	}
}

// everybody has each process begin that is not there, and gives out the lanes.
func (w *world) everybody() {
	for seat := range w.seats {
		w.begin(seat)
	}
	for _, l := range w.source.Lanes {
		w.give(l)
	}
}

// patienceOfAll is patience, with that of a sender.
func (w *world) patienceOfAll() (all time.Duration) {
	for _, each := range w.worlds() {
		all += each.patience()
	}
	return all
}

// patience is how long the machine may take in the calm phase: every message
// may use up its attempts, one after the other, each after its longest wait.
func (w *world) patience() time.Duration {
	c, messages := w.plan.Config, len(w.messages)
	if w.main != nil {
		messages = w.mostIntents()
	}
	each := c.MaxDelay + c.MaxInMemoryWait + c.BackoffMost + w.plan.Timeout + 20*w.plan.Lag + 2*w.plan.Lease + c.Poll + 2*c.Gap
	return time.Minute + 2*c.IdleExit + time.Duration(messages*4*(c.MaxAttempts+10))*each
}
