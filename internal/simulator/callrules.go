package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// takeover is how a claim ended that another took.
type takeover struct{ until, at time.Duration }

// called is called when a call is made.
func (w *world) called(c *call) {
	p, r, id := w.provider, c.claim.row, c.message.id
	w.arose("E3, start")
	if !r.starts[c.token] {
		w.broke("E3, start", "%s is called for in f%d, and no start is written down", c.message.name(), c.f.of.Number)
	}
	if c.claim.ends <= w.now {
		w.broke("B11", "%s is called for in f%d, and its lease is over as far as its process knows", c.message.name(), c.f.of.Number)
	}
	if want := c.message.chosenKey; want != "" && c.key != want {
		w.broke("E3, key", "%s is called for under the key %s, and its own is %s", c.message.name(), c.key, want)
	}
	if first, again := p.keys[id]; again && first != c.key {
		w.broke("E3, key", "%s is called for under the key %s, and was under %s", c.message.name(), c.key, first)
	}
	if p.made[id]++; p.made[id] > 1 {
		w.arose("E3, key")
		if w.main != nil {
			w.coverage.add("fault", "an intent is sent again under its key")
		}
	}
	p.keys[id] = c.key
	for _, other := range p.underWay {
		if other.claim.row == r && other.claim != c.claim && !other.f.p.over {
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
	r := c.claim.row
	w.arose("B11")
	w.coverage.add("fault", "a call beside one whose lease has ended")
	taken, was := r.taken[other.token]
	own, lost := r.taken[c.token]
	if !lost && !r.stands(c.token) {
		return // a person has ended this claim, and its process does not know yet
	}
	switch {
	case lost && w.store.jumped && own.until <= own.at:
		w.coverage.add("fault", "a call whose lease ended early by the store's clock")
	case r.stands(other.token):
		w.broke("B11", "%s is called for in f%d beside f%d, whose claim stands", c.message.name(), c.f.of.Number, other.f.of.Number)
	case was && taken.until > taken.at:
		w.broke("B11", "%s is called for in f%d beside f%d, whose claim was taken in its lease", c.message.name(), c.f.of.Number, other.f.of.Number)
	}
}

// checkStep is called when a process has decided what to do about a call.
func (w *world) checkStep(f *flight, step calls.Step) {
	if step == calls.GiveUp || step == calls.Ask {
		w.arose("E3, window")
		w.coverage.add("fault", "a call is not made blindly")
	}
}

// checkCharge checks that a message is charged once, unless somebody said of an earlier
// call that it was not (E3).
func (w *world) checkCharge(m *message) {
	p := w.provider
	if most := 1 + p.denied[m.id]; p.charged[m.id] > most {
		w.broke("E3, window", "%s is charged for %d times, and may be %d times", m.name(), p.charged[m.id], most)
	}
}

// checkClaimEnd checks the end of a claim that becomes durable: its token stands, and what
// it says of calls is so.
func (f *flight) checkClaimEnd(c *claim, r *machine.Row) {
	w, m := f.p.w, c.row.message
	if !c.row.stands(f.sent[r.Entry]) {
		w.broke("law 5", "f%d ends the claim of %s, whose token does not stand", f.of.Number, m.name())
	}
	if !w.plan.calls {
		return
	}
	unknown := c.row.calls.Started > c.row.calls.Finished
	switch {
	case r.As == machine.AsApplied && w.provider.charged[m.id] == 0:
		w.broke("law 12", "%s is completed, and was not charged for", m.name())
	case r.Reason == semel.ReasonOutcomeUnknown && !unknown:
		w.broke("E3, window", "%s is set aside because an outcome is unknown, and none is", m.name())
	case r.As != machine.AsApplied && r.As != machine.AsDuplicate && !unknown && w.provider.charged[m.id] > 0:
		w.broke("E3, outcome", "%s ends as %s, was charged for, and its row says that nothing is unknown", m.name(), word(asNames[:], r.As))
	}
}

// unknownCall reports whether a row of an identity says that the outcome of a call is unknown.
func (s *simStore) unknownCall(id string) bool {
	return slices.ContainsFunc(s.inbox, func(r *row) bool { return r.key.id == id && r.calls.Started > r.calls.Finished })
}

// checkCalls holds a message against what the provider has, when all is over.
func (w *world) checkCalls(m *message) {
	r := w.store.rows[rowKey{id: m.id}]
	if !w.plan.calls || r == nil || w.provider.charged[m.id] == 0 {
		return
	}
	w.arose("E3, outcome")
	done := w.outcomeOf(m) == store.Applied
	if !done && r.as != machine.AsDiscarded && !w.store.unknownCall(m.id) {
		w.broke("E3, outcome", "%s was charged for, ends as %s, and its row says that nothing is unknown", m.name(), word(asNames[:], r.as))
	}
}
