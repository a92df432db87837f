package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/steps"
	"github.com/semel-go/semel/store"
)

// change is what a later release does to the steps of its messages.
type change uint8

const (
	unchanged change = iota
	renamesFirst
	renamesSecond
	swaps
	adds
	removes
	changes
)

// drawSteps lets messages have several steps, as those of consumer.NewSteps have. Whether
// they do is told by a number that was drawn before, so that the other seeds keep their
// histories.
func (p *plan) drawSteps(c *choices) {
	if !p.config.Wait || p.calls || p.config.Seed%7 != 2 && p.config.Seed%7 != 3 {
		return
	}
	p.steps = c.between(2, 4)
	p.whole = false // each step is one message's
	p.config.Keep, p.config.Receive = true, true
	if c.flip() {
		p.processes = 2
	}
	if c.flip() {
		p.lease = min(p.lease, max(p.timeout, 150*time.Millisecond))
	}
	p.change = change(c.below(int(changes)))
	p.changeAt = c.wait(p.span)
}

// stepNames are the steps of a process that begins now; nil without.
func (w *world) stepNames() []string {
	if w.plan.steps == 0 {
		return nil
	}
	names := []string{"reserve", "charge", "ship", "mail"}[:w.plan.steps]
	if w.now < w.plan.changeAt {
		return names
	}
	switch w.plan.change {
	case renamesFirst:
		names[0] = "book"
	case renamesSecond:
		names[1] = "pay"
	case swaps:
		names[0], names[1] = names[1], names[0]
	case adds:
		return append(names, "archive")
	case removes:
		return names[:len(names)-1]
	}
	return names
}

// deploy has every process begin again, with the steps that are changed.
func (w *world) deploy() {
	if w.plan.steps == 0 || w.plan.change == unchanged {
		return
	}
	w.agenda.add(w.plan.changeAt, func() {
		if w.calm || w.quiet {
			return
		}
		w.fault("the steps are changed", "to %q", w.stepNames())
		for _, p := range w.living() {
			p.hear(p.stop)
		}
	})
}

// drawStep lets a message misbehave at a step that is not its first.
func (w *world) drawStep(m *message) {
	if w.plan.steps > 0 && m.conduct != succeeds {
		m.from = w.choices.below(w.plan.steps - 1)
	}
}

// acts reports whether a message of a flight misbehaves now, and not only at a later step.
func (f *flight) acts(entry int, m *message) bool {
	c := handOf(f.of.Entries[entry].Item).claim
	return m.times > 0 && (c == nil || len(f.p.names) == 0 || len(c.steps) >= m.from)
}

// takesEffect is a handler, or a step, that has run well.
func (f *flight) takesEffect(entry int, m *message) {
	x := effect{entry: entry, message: m}
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil && len(f.p.names) > 0 {
		x.step = f.p.names[steps.Next(c.steps)]
		c.stepped = steps.With(c.steps, x.step, []byte(x.step+" of "+m.id))
		x.part = steps.Left(f.p.names, c.stepped)
	}
	f.tx.effects = append(f.tx.effects, x)
	f.done++
}

// stepOf is the step that an entry's handler runs, "" without.
func (f *flight) stepOf(entry int) string {
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil && len(f.p.names) > 0 {
		return f.p.names[steps.Next(c.steps)]
	}
	return ""
}

// stepped are the entries of which another step is left.
func (f *flight) stepped() (entries []int) {
	for _, x := range f.tx.effects {
		if x.part {
			entries = append(entries, x.entry)
		}
	}
	return entries
}

// endsAs is how an entry ends with the flight's commit.
func (f *flight) endsAs(entry int) machine.As {
	as := f.of.Entries[entry].As
	if as == machine.AsApplied && slices.Contains(f.stepped(), entry) {
		return machine.AsStepped
	}
	return as
}

// betweenSteps lets a process die or freeze when a step is committed, and before it goes on.
func (f *flight) betweenSteps() {
	w := f.p.w
	switch {
	case f.p.over || len(f.stepped()) == 0:
	case w.hurt(troubleCrash):
		f.p.die("crash", "between two steps")
	case w.hurt(troubleFreeze):
		f.p.freeze()
	}
}

// goesOn counts who goes on with a message of which steps are done.
func (p *process) goesOn(r *row) {
	w := p.w
	switch {
	case len(r.steps) == 0 || r.by == nil:
	case r.by == p:
		w.coverage.add("fault", "a step after another of the same life")
	case r.by.died:
		w.coverage.add("fault", "a step after a crash between two")
	case r.by.frozen:
		w.coverage.add("fault", "a step of a message whose last is a frozen process's")
	default:
		w.coverage.add("fault", "a step after another of another life")
	}
}

// lateStep counts a step that would commit after its claim was another's.
func (f *flight) lateStep() {
	if len(f.p.names) > 0 && len(f.tx.effects) > 0 {
		f.p.w.coverage.add("fault", "a late commit of a step refused")
	}
}

// stepNamesOf are the names of steps that are done.
func stepNamesOf(done []store.StepDone) (names []string) {
	for i := range done {
		names = append(names, done[i].Name)
	}
	return names
}
