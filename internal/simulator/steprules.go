package simulator

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/store"
)

// begins reports whether a list of steps begins with those that are done, and has another.
func begins(names, done []string) bool {
	return len(done) < len(names) && slices.Equal(names[:len(done)], done)
}

// stepSetAside checks a claim whose steps are said to have been changed, or not (C11).
func (c *checker) stepSetAside(h *handed) {
	if c.w.plan.Steps == 0 {
		return
	}
	refused := h.item.Refused != nil && h.item.Refused.Reason == semel.ReasonSteps
	done := c.w.store.StepsDone[h.delivery.Message.ID]
	switch {
	case !h.claim.Row.Stands(h.claim.Token()):
	case refused && begins(c.p.names, done):
		c.broke("C11", "%s is set aside because its steps %q were changed, and they are the first of %q", trace.Item(h.item), done, c.p.names)
	case refused:
		c.w.coverage.Add("fault", "the steps of a message are no longer its consumer's")
	case c.w.plan.Change != plan.Unchanged && c.w.now > c.w.plan.ChangeAt && len(done) > 0:
		c.w.coverage.Add("fault", "a message goes on with steps that were changed")
	}
}

// stepBegins checks that the step that runs is the one after those that have taken effect,
// whose outputs it is told.
func (c *checker) stepBegins(f *flight, entry int) {
	h := handOf(f.of.Entries[entry].Item)
	if h.claim == nil || len(c.p.names) == 0 || !h.claim.Row.Stands(h.claim.Token()) {
		return
	}
	id := h.delivery.Message.ID
	done, told := c.w.store.StepsDone[id], h.claim.Steps
	switch {
	case !slices.Equal(done, stepNamesOf(told)):
		c.broke("C11", "%s runs, told that %q are done, and %q are", trace.Item(h.item), stepNamesOf(told), done)
	case !begins(c.p.names, done):
		c.broke("C11", "%s runs in f%d, and its steps %q are not the first of %q", trace.Item(h.item), f.of.Number, done, c.p.names)
	case slices.ContainsFunc(told, func(s store.StepDone) bool { return string(s.Output) != s.Name+" of "+id }):
		c.broke("C11", "%s is told outputs that its steps did not give: %q", trace.Item(h.item), told)
	}
}

// stepEnds checks how the claim of an entry is to end whose step has run.
func (c *checker) stepEnds(f *flight, i int, r *machine.Row) {
	if want := f.endsAs(i); len(c.p.names) > 0 && r.As != want {
		c.broke("C11", "the claim of entry %d of f%d ends as %s, and should as %s", i, f.of.Number, trace.Word(trace.AsNames[:], r.As), trace.Word(trace.AsNames[:], want))
	}
}

// stepDone checks a step that is now in the log: it is the next of its message's, took
// effect never before, and its row says so from this commit on (C11).
func (c *checker) stepDone(f *flight, x model.Effect) {
	s, id := c.w.store, x.Message.ID
	if x.Step == "" {
		return
	}
	c.arose("C11")
	before := s.StepsDone[id]
	done := append(slices.Clip(before), x.Step)
	s.StepsDone[id] = done
	r := handOf(f.of.Entries[x.Entry].Item).claim.Row
	last := len(done) == len(c.p.names)
	switch {
	case slices.Contains(before, x.Step):
		c.broke("C11", "the step %s of %s takes effect a second time", x.Step, x.Message.Name())
	case !begins(c.p.names, before) || c.p.names[len(before)] != x.Step:
		c.broke("C11", "the step %s of %s takes effect after %q, and the steps are %q", x.Step, x.Message.Name(), before, c.p.names)
	case last != (r.As == machine.AsApplied):
		c.broke("C11", "%s is %s with the step %s, and its steps are %q", x.Message.Name(), trace.Word(trace.AsNames[:], r.As), x.Step, c.p.names)
	case !slices.Equal(stepNamesOf(r.Steps), done):
		c.broke("C11", "the row of %s says that %q are done, and %q are", x.Message.Name(), stepNamesOf(r.Steps), done)
	case r.Attempts > 0 && !last:
		c.broke("C11", "%s has %d attempts before its next step", x.Message.Name(), r.Attempts)
	}
	if m := x.Message; m.Version > 0 && x.Part && m.Version != c.w.ledger[m.Stream]+1 {
		c.broke("B9", "a step of %s takes effect as version %d of %s, which is at %d", m.Name(), m.Version, m.Stream, c.w.ledger[m.Stream])
	}
}
