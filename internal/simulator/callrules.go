package simulator

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/store"
)

// called is called when a call is made.
func (w *world) called(c *call) {
	p, r, id := w.provider, c.claim.Row, c.message.ID
	w.arose("E3, start")
	if !r.Starts[c.token] {
		w.broke("E3, start", "%s is called for in f%d, and no start is written down", c.message.Name(), c.f.of.Number)
	}
	if c.claim.Ends <= w.now {
		w.broke("B11", "%s is called for in f%d, and its lease is over as far as its process knows", c.message.Name(), c.f.of.Number)
	}
	if want := c.message.ChosenKey; want != "" && c.key != want {
		w.broke("E3, key", "%s is called for under the key %s, and its own is %s", c.message.Name(), c.key, want)
	}
	if first, again := p.keys[id]; again && first != c.key {
		w.broke("E3, key", "%s is called for under the key %s, and was under %s", c.message.Name(), c.key, first)
	}
	if p.made[id]++; p.made[id] > 1 {
		w.arose("E3, key")
		if w.main != nil {
			w.coverage.Add("fault", "an intent is sent again under its key")
		}
	}
	p.keys[id] = c.key
	for _, other := range p.underWay {
		if other.claim.Row == r && other.claim != c.claim && !other.f.p.over {
			w.checkOverlap(c, other)
		}
	}
	p.underWay = append(p.underWay, c)
}

// checkOverlap checks that a call beside another for the same message has a reason: the
// lease of the other's claim has ended, or a person has ended the claim (B11). If the store's
// clock jumped ahead, this claim's lease may have ended by that clock alone, and was taken: its
// process cannot see that.
func (w *world) checkOverlap(c, other *call) {
	r := c.claim.Row
	w.arose("B11")
	w.coverage.Add("fault", "a call beside one whose lease has ended")
	taken, was := r.Taken[other.token]
	own, lost := r.Taken[c.token]
	if !lost && !r.Stands(c.token) {
		return // a person has ended this claim, and its process does not know yet
	}
	switch {
	case lost && w.store.Jumped && own.Until <= own.At:
		w.coverage.Add("fault", "a call whose lease ended early by the store's clock")
	case r.Stands(other.token):
		w.broke("B11", "%s is called for in f%d beside f%d, whose claim stands", c.message.Name(), c.f.of.Number, other.f.of.Number)
	case was && taken.Until > taken.At:
		w.broke("B11", "%s is called for in f%d beside f%d, whose claim was taken in its lease", c.message.Name(), c.f.of.Number, other.f.of.Number)
	}
}

// checkStep is called when a process has decided what to do about a call.
func (w *world) checkStep(f *flight, step calls.Step) {
	if step == calls.GiveUp || step == calls.Ask {
		w.arose("E3, window")
		w.coverage.Add("fault", "a call is not made blindly")
	}
}

// checkCharge checks that a message is charged once, unless somebody said of an earlier
// call that it was not (E3).
func (w *world) checkCharge(m *model.Message) {
	p := w.provider
	if most := 1 + p.denied[m.ID]; p.charged[m.ID] > most {
		w.broke("E3, window", "%s is charged for %d times, and may be %d times", m.Name(), p.charged[m.ID], most)
	}
}

// checkClaimEnd checks the end of a claim that becomes durable: its token stands, and what
// it says of calls is so.
func (f *flight) checkClaimEnd(c *model.Claim, r *machine.Row) {
	w, m := f.p.w, c.Row.Message
	if !c.Row.Stands(f.sent[r.Entry]) {
		w.broke("law 5", "f%d ends the claim of %s, whose token does not stand", f.of.Number, m.Name())
	}
	if !w.plan.Calls {
		return
	}
	unknown := c.Row.Calls.Started > c.Row.Calls.Finished
	switch {
	case r.As == machine.AsApplied && w.provider.charged[m.ID] == 0:
		w.broke("law 12", "%s is completed, and was not charged for", m.Name())
	case r.Reason == semel.ReasonOutcomeUnknown && !unknown:
		w.broke("E3, window", "%s is set aside because an outcome is unknown, and none is", m.Name())
	case r.As != machine.AsApplied && r.As != machine.AsDuplicate && !unknown && w.provider.charged[m.ID] > 0:
		w.broke("E3, outcome", "%s ends as %s, was charged for, and its row says that nothing is unknown", m.Name(), trace.Word(trace.AsNames[:], r.As))
	}
}

// checkCalls holds a message against what the provider has, when all is over.
func (w *world) checkCalls(m *model.Message) {
	r := w.store.Rows[model.RowKey{ID: m.ID}]
	if !w.plan.Calls || r == nil || w.provider.charged[m.ID] == 0 {
		return
	}
	w.arose("E3, outcome")
	done := w.outcomeOf(m) == store.Applied
	if !done && r.As != machine.AsDiscarded && !w.store.UnknownCall(m.ID) {
		w.broke("E3, outcome", "%s was charged for, ends as %s, and its row says that nothing is unknown", m.Name(), trace.Word(trace.AsNames[:], r.As))
	}
}
