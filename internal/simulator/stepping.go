package simulator

import (
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/steps"
	"github.com/semel-go/semel/store"
)

// stepNames are the steps of a process that begins now; nil without.
func (w *world) stepNames() []string {
	if w.plan.Steps == 0 {
		return nil
	}
	names := []string{"reserve", "charge", "ship", "mail"}[:w.plan.Steps]
	if w.now < w.plan.ChangeAt {
		return names
	}
	switch w.plan.Change {
	case plan.RenamesFirst:
		names[0] = "book"
	case plan.RenamesSecond:
		names[1] = "pay"
	case plan.Swaps:
		names[0], names[1] = names[1], names[0]
	case plan.Adds:
		return append(names, "archive")
	case plan.Removes:
		return names[:len(names)-1]
	}
	return names
}

// deploy has every process begin again, with the steps that are changed.
func (w *world) deploy() {
	if w.plan.Steps == 0 || w.plan.Change == plan.Unchanged {
		return
	}
	w.agenda.Add(w.plan.ChangeAt, func() {
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
func (w *world) drawStep(m *model.Message) {
	if w.plan.Steps > 0 && m.Conduct != model.Succeeds {
		m.From = w.choices.Below(w.plan.Steps - 1)
	}
}

// acts reports whether a message of a flight misbehaves now, and not only at a later step.
func (f *flight) acts(entry int, m *model.Message) bool {
	c := handOf(f.of.Entries[entry].Item).claim
	return m.Times > 0 && (c == nil || len(f.p.names) == 0 || len(c.Steps) >= m.From)
}

// takesEffect is a handler, or a step, that has run well.
func (f *flight) takesEffect(entry int, m *model.Message) {
	x := model.Effect{Entry: entry, Message: m}
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil && len(f.p.names) > 0 {
		x.Step = f.p.names[steps.Next(c.Steps)]
		c.Stepped = steps.With(c.Steps, x.Step, []byte(x.Step+" of "+m.ID))
		x.Part = steps.Left(f.p.names, c.Stepped)
	}
	f.tx.Effects = append(f.tx.Effects, x)
	f.done++
}

// stepOf is the step that an entry's handler runs, "" without.
func (f *flight) stepOf(entry int) string {
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil && len(f.p.names) > 0 {
		return f.p.names[steps.Next(c.Steps)]
	}
	return ""
}

// stepped are the entries of which another step is left.
func (f *flight) stepped() (entries []int) {
	for _, x := range f.tx.Effects {
		if x.Part {
			entries = append(entries, x.Entry)
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
	case w.hurt(plan.TroubleCrash):
		f.p.die("crash", "between two steps")
	case w.hurt(plan.TroubleFreeze):
		f.p.freeze()
	}
}

// goesOn counts who goes on with a message of which steps are done.
func (p *process) goesOn(r *model.Row) {
	w := p.w
	switch {
	case len(r.Steps) == 0 || r.By == nil:
	case r.By == p:
		w.coverage.Add("fault", "a step after another of the same life")
	case r.By.(*process).died:
		w.coverage.Add("fault", "a step after a crash between two")
	case r.By.(*process).frozen:
		w.coverage.Add("fault", "a step of a message whose last is a frozen process's")
	default:
		w.coverage.Add("fault", "a step after another of another life")
	}
}

// lateStep counts a step that would commit after its claim was another's.
func (f *flight) lateStep() {
	if len(f.p.names) > 0 && len(f.tx.Effects) > 0 {
		f.p.w.coverage.Add("fault", "a late commit of a step refused")
	}
}

// stepNamesOf are the names of steps that are done.
func stepNamesOf(done []store.StepDone) (names []string) {
	for i := range done {
		names = append(names, done[i].Name)
	}
	return names
}
