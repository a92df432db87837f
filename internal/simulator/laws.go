package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// checkCommit checks a COMMIT before it reaches the store.
func (c *checker) checkCommit(a machine.Commit) {
	f := c.inPhase(a, a.Flight, begun, ran)
	if f == nil {
		return
	}
	if f.failed {
		c.broke("law 3", "f%d commits what a failed handler left", a.Flight.Number)
	}
	for _, i := range a.Trim {
		if i < 0 || i >= len(f.verdicts) || f.verdicts[i].Kind != store.Fresh && !cannotRunNow(f.verdicts[i]) {
			c.broke("protocol", "%s trims entry %d, which it did not mark", trace.Action(a), i)
			return
		}
	}
	if len(f.call.Fresh) > 0 {
		c.arose("law 1")
	}
	handled := f.call.Fresh[:f.done]
	for i, e := range a.Flight.Entries {
		trimmed := slices.Contains(a.Trim, i)
		switch {
		case cannotRunNow(f.verdicts[i]) && !trimmed:
			c.broke("law 1", "f%d commits the marker of entry %d, which is out of its turn", a.Flight.Number, i)
		case f.verdicts[i].Kind != store.Fresh || e.As != machine.AsApplied:
		case slices.Contains(handled, i) && trimmed:
			c.broke("law 1", "f%d commits the effect of entry %d without its marker", a.Flight.Number, i)
		case !slices.Contains(handled, i) && !trimmed:
			c.broke("law 1", "f%d commits the marker of entry %d without its effect", a.Flight.Number, i)
		}
	}
	c.checkRows(f, a)
}

// checkRows checks the rows of a commit: each message that continues in the inbox gets exactly one row.
func (c *checker) checkRows(f *flight, a machine.Commit) {
	rowOf := map[int]machine.Row{}
	for _, r := range a.Rows {
		if r.Entry < 0 || r.Entry >= len(f.verdicts) {
			c.broke("protocol", "%s has a row of entry %d", trace.Action(a), r.Entry)
			return
		}
		first, there := rowOf[r.Entry]
		if there && (!r.Repeat || r.Conflict != first.Conflict) {
			c.broke("protocol", "%s has two rows of entry %d", trace.Action(a), r.Entry)
		}
		if !there {
			rowOf[r.Entry] = r
		}
	}
	for i, e := range a.Flight.Entries {
		r, there := rowOf[i]
		trimmed := slices.Contains(a.Trim, i)
		if there && trimmed {
			c.broke("law 12", "entry %d of f%d is trimmed and has a row", i, a.Flight.Number)
		}
		if !trimmed {
			c.checkRow(f, i, e, r, there)
		}
	}
}

// checkRow checks the inbox row of one entry. The parameter there is false if the entry has no row.
func (c *checker) checkRow(f *flight, i int, e machine.Entry, r machine.Row, there bool) {
	if handOf(e.Item).claim != nil {
		c.claimRow(f, i, e, r, there)
		return
	}
	v, keep := f.verdicts[i], c.p.config.Keep
	setAside := keep || e.As != machine.AsApplied && e.As != machine.AsDuplicate
	conflict := v.Kind == store.Conflict
	if conflict {
		c.arose("law 10")
	}
	c.rowInTurn(r, handOf(e.Item))
	switch {
	case there && r.Conflict != conflict:
		c.broke("law 10", "the row of entry %d of f%d says conflict: %v; the store said %s", i, f.of.Number, r.Conflict, v.String())
	case there && conflict && r.Repeat != v.Known:
		c.broke("law 10", "the row of entry %d of f%d is a repeat: %v; the store said %s", i, f.of.Number, r.Repeat, v.String())
	case there && !conflict && !r.Repeat && (v.Kind != store.Fresh || !setAside || r.As != e.As):
		c.broke("law 12", "entry %d of f%d, %s and %s, has a row", i, f.of.Number, trace.Word(trace.AsNames[:], e.As), v.String())
	case there && r.Repeat && !conflict && c.w.store.Rows[model.RowKey{ID: identityOf(e.Item)}] == nil && !(keep && v.Already(store.Applied)) && !c.w.store.WasRemoved(identityOf(e.Item)):
		c.broke("law 12", "entry %d of f%d repeats a row that is not there", i, f.of.Number)
	case there && conflict && !r.Repeat && r.As == machine.AsDeadLettered && !handOf(e.Item).copied:
		c.broke("law 2", "entry %d of f%d is a conflict to be dead-lettered, and no copy of it is known", i, f.of.Number)
	case there && !conflict && !r.Repeat && r.Attempts != handOf(e.Item).attemptsWith(e.As):
		c.checkAttempts(handOf(e.Item), r.Attempts)
	case !there && setAside && v.Kind == store.Fresh:
		c.broke("law 12", "entry %d of f%d is %s and has no row", i, f.of.Number, trace.Word(trace.AsNames[:], e.As))
	}
}

// checkCommitted is called when a batch is committed, whether or not the machine ever learns of it.
func (c *checker) checkCommitted(f *flight) {
	c.inActive(f)
	c.inOrder(f)
	c.keptBehindOld(f)
	for i, e := range f.of.Entries {
		handOf(e.Item).endStore = c.w.store
		if f.verdicts[i].Kind == store.Fresh && !slices.Contains(f.trim, i) {
			h := handOf(e.Item)
			h.handled, h.applied = true, f.endsAs(i) == machine.AsApplied
		}
	}
	for _, x := range f.tx.Effects {
		if c.stepDone(f, x); x.Part {
			c.inPlace(f, x)
			continue
		}
		c.checkEffect(f, x)
	}
}

// checkEffect checks an effect that was just committed.
func (c *checker) checkEffect(f *flight, x model.Effect) {
	s, m := c.w.store, x.Message
	c.arose("law 12")
	if h := handOf(f.of.Entries[x.Entry].Item); h.claim != nil && h.claim.Row.Key.Conflict {
		c.w.coverage.Add("fault", "a conflict that was let run takes effect")
	}
	c.keepsIdentity(f, x)
	if c.p.config.Unmarked {
		c.checkOrder(f, x)
		return
	}
	if s.Effects[m.ID] != 1 {
		c.broke("law 12", "%s has %d effects", m.ID, s.Effects[m.ID])
	}
	k, there := s.Markers[m.ID]
	if !there || k.Outcome != store.Applied {
		c.broke("law 12", "%s has an effect and its marker does not say so", m.ID)
	}
	if there && model.Conflicts(k.Print, f.of.Entries[x.Entry].Item.Print) {
		c.broke("law 10", "%s has an effect of another content", m.ID)
	}
	c.checkOrder(f, x)
	c.inPlace(f, x)
	c.besideOld(f, x)
}

// checkOrder checks that no earlier message of the lane must still be applied.
func (c *checker) checkOrder(f *flight, x model.Effect) {
	conf := c.p.config
	h := handOf(f.of.Entries[x.Entry].Item)
	d := h.delivery
	if h.claim != nil || conf.Lanes == machine.NoOrder || conf.OneAttempt || c.w.Plan.Queue || c.w.store.Effects[x.Message.ID] != 1 {
		return
	}
	if d.Position > 0 {
		c.arose("law 8")
	}
	for _, before := range d.Lane.Log[:d.Position] {
		if c.inLine(before, x.Message.Route) && !c.w.hasLeft(before) && !c.passedOver(f, before) {
			c.broke("law 8", "%s at %s/%d takes effect before %s at %d", x.Message.Name(), d.Lane.ID, d.Position,
				before.Message.Name(), before.Position)
			return
		}
	}
}

// hasLeft reports whether a delivery no longer has to be applied.
func (w *world) hasLeft(d *model.Delivery) bool {
	m := d.Message
	if d.Settled || m.Refused != "" || m.Conduct == model.SaysDuplicate {
		return true
	}
	marker, marked := w.store.Marked(m)
	return marked && marker.Outcome != model.Newer || w.store.Effects[m.ID] > 0 || w.store.Rows[model.RowKey{ID: m.ID}] != nil
}

// checkCall is called when a handler calls the provider.
func (w *world) checkCall(c *call) {
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
	if first, again := p.firstKeys[id]; again && first != c.key {
		w.broke("E3, key", "%s is called for under the key %s, and was under %s", c.message.Name(), c.key, first)
	}
	if p.callCounts[id]++; p.callCounts[id] > 1 {
		w.arose("E3, key")
		if w.main != nil {
			w.coverage.Add("fault", "an intent is sent again under its key")
		}
	}
	p.firstKeys[id] = c.key
	for _, other := range p.underWay {
		if other.claim.Row == r && other.claim != c.claim && !other.f.p.over {
			w.checkOverlap(c, other)
		}
	}
	p.underWay = append(p.underWay, c)
}

// checkOverlap checks a call that is made while another call for the same message is in progress. Overlapping calls are
// allowed if the lease of the other claim has ended, or if a person has ended the other claim (B11). If the store's
// clock jumped ahead, the lease may have ended only by the store's clock, so that another process claimed the row
// without the knowledge of the old claim's process.
func (w *world) checkOverlap(c, other *call) {
	r := c.claim.Row
	w.arose("B11")
	w.coverage.Add("fault", "a call beside one whose lease has ended")
	taken, was := r.Taken[other.token]
	own, lost := r.Taken[c.token]
	if !lost && !r.Stands(c.token) {
		return // a person has ended this claim, and the process does not know that yet
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

// checkStep is called when a process has decided how to continue with a call.
func (w *world) checkStep(f *flight, step calls.Step) {
	if step == calls.GiveUp || step == calls.Ask {
		w.arose("E3, window")
		w.coverage.Add("fault", "a call is not made blindly")
	}
}

// checkCharge checks that a message is charged once. The provider may charge twice only if an earlier call was reported
// as not charged (E3).
func (w *world) checkCharge(m *model.Message) {
	p := w.provider
	if most := 1 + p.denials[m.ID]; p.charges[m.ID] > most {
		w.broke("E3, window", "%s is charged for %d times, and may be %d times", m.Name(), p.charges[m.ID], most)
	}
}

// checkClaimEnd checks the committed end of a claim: the token must be valid, and the recorded outcome of
// calls must be right.
func (f *flight) checkClaimEnd(c *model.Claim, r *machine.Row) {
	w, m := f.p.w, c.Row.Message
	if !c.Row.Stands(f.endedTokens[r.Entry]) {
		w.broke("law 5", "f%d ends the claim of %s, whose token does not stand", f.of.Number, m.Name())
	}
	if !w.Plan.Calls {
		return
	}
	unknown := c.Row.Calls.Started > c.Row.Calls.Finished
	switch {
	case r.As == machine.AsApplied && w.provider.charges[m.ID] == 0:
		w.broke("law 12", "%s is completed, and was not charged for", m.Name())
	case r.Reason == semel.ReasonOutcomeUnknown && !unknown:
		w.broke("E3, window", "%s is set aside because an outcome is unknown, and none is", m.Name())
	case r.As != machine.AsApplied && r.As != machine.AsDuplicate && !unknown && w.provider.charges[m.ID] > 0:
		w.broke("E3, outcome", "%s ends as %s, was charged for, and its row says that nothing is unknown", m.Name(), trace.Word(trace.AsNames[:], r.As))
	}
}

// checkCalls compares a message with the final state of the provider.
func (w *world) checkCalls(m *model.Message) {
	r := w.store.Rows[model.RowKey{ID: m.ID}]
	if !w.Plan.Calls || r == nil || w.provider.charges[m.ID] == 0 {
		return
	}
	w.arose("E3, outcome")
	done := w.outcomeOf(m) == store.Applied
	if !done && r.As != machine.AsDiscarded && !w.store.UnknownCall(m.ID) {
		w.broke("E3, outcome", "%s was charged for, ends as %s, and its row says that nothing is unknown", m.Name(), trace.Word(trace.AsNames[:], r.As))
	}
}

// unknownHere reports whether the marker of an item has an outcome that only the newer release knows.
func (c *checker) unknownHere(it *machine.Item) bool {
	return !c.p.config.Unmarked && c.w.store.Judge(identityOf(it), it.Print).Kind == store.Newer
}

// heldForNewer checks a report about a message whose marker a newer release wrote.
func (c *checker) heldForNewer(a machine.Report) {
	c.arose("P1")
	if a.Wait < time.Second {
		c.broke("P1", "%s is told of after %v", trace.Item(a.Item), a.Wait)
	}
}

// checkUnfinished checks the messages that are left when a process ends idle. Only three kinds are allowed: messages
// whose marker a newer release wrote, their copies, and later messages of their lanes. The action Done must contain the
// lanes of all messages that are left.
func (c *checker) checkUnfinished(a machine.Done) {
	want := map[source.Lane]int{}
	lines, copies := map[line]bool{}, map[string]bool{}
	for _, h := range c.hands {
		if h.settled || h.stale || c.lanes[h.item.Lane].revoking {
			continue
		}
		id := h.item.Source + "\x00" + h.item.Identity
		l, ordered := c.lineOf(h.item)
		if h.settling || h.flight != nil || !h.hasNewerMarker && !copies[id] && !copies[formerOf(h.item)] && !(ordered && lines[l]) {
			c.broke("law 11", "it is idle with %s unsettled", trace.Item(h.item))
			return
		}
		want[h.item.Lane]++
		lines[l], copies[id], copies[formerOf(h.item)] = true, true, true
	}
	if len(want) > 0 {
		c.arose("P1")
		c.w.coverage.Add("fault", "run ends idle with what a newer release marked")
	}
	for _, b := range a.Behind {
		if want[b.Lane] != b.Messages {
			c.broke("P1", "%d messages of %s are named as left, and %d are", b.Messages, b.Lane.ID, want[b.Lane])
		}
		delete(want, b.Lane)
	}
	if len(want) > 0 {
		c.broke("P1", "it is idle, and does not name %d lanes of which something is left", len(want))
	}
}

// checkFullReport checks that the memory is really full when the machine reports ReportFull.
func (c *checker) checkFullReport(a machine.Report) {
	messages, bytes := c.unsettled()
	if messages != a.N || messages < c.p.config.MaxMessages && bytes < c.p.config.MaxBytes || c.fetching {
		c.broke("P1", "%d messages are said to leave no room, and %d of %d bytes are held", a.N, messages, bytes)
	}
}
