package simulator

import (
	"maps"
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/store"
)

// commit checks what a COMMIT would make durable.
func (c *checker) commit(a machine.Commit) {
	f := c.inPhase(a, a.Flight, begun, ran)
	if f == nil {
		return
	}
	if f.failed {
		c.broke("law 3", "f%d commits what a failed handler left", a.Flight.Number)
	}
	for _, i := range a.Trim {
		if i < 0 || i >= len(f.verdicts) || f.verdicts[i].Kind != store.Fresh && !early(f.verdicts[i]) {
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
		case early(f.verdicts[i]) && !trimmed:
			c.broke("law 1", "f%d commits the marker of entry %d, which is out of its turn", a.Flight.Number, i)
		case f.verdicts[i].Kind != store.Fresh || e.As != machine.AsApplied:
		case slices.Contains(handled, i) && trimmed:
			c.broke("law 1", "f%d commits the effect of entry %d without its marker", a.Flight.Number, i)
		case !slices.Contains(handled, i) && !trimmed:
			c.broke("law 1", "f%d commits the marker of entry %d without its effect", a.Flight.Number, i)
		}
	}
	c.rows(f, a)
}

// rows checks that whatever leaves the direct path leaves a row, once.
func (c *checker) rows(f *flight, a machine.Commit) {
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
			c.row(f, i, e, r, there)
		}
	}
}

// row checks the row of one entry, or that it has none.
func (c *checker) row(f *flight, i int, e machine.Entry, r machine.Row, there bool) {
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
	case there && r.Repeat && !conflict && c.w.store.Rows[model.RowKey{ID: identity(e.Item)}] == nil && !(keep && v.Already(store.Applied)) && !c.w.store.WasRemoved(identity(e.Item)):
		c.broke("law 12", "entry %d of f%d repeats a row that is not there", i, f.of.Number)
	case there && conflict && !r.Repeat && r.As == machine.AsDeadLettered && !handOf(e.Item).copied:
		c.broke("law 2", "entry %d of f%d is a conflict to be dead-lettered, and no copy of it is known", i, f.of.Number)
	case there && !conflict && !r.Repeat && r.Attempts != handOf(e.Item).attemptsWith(e.As):
		c.charged(handOf(e.Item), r.Attempts)
	case !there && setAside && v.Kind == store.Fresh:
		c.broke("law 12", "entry %d of f%d is %s and has no row", i, f.of.Number, trace.Word(trace.AsNames[:], e.As))
	}
}

// committed is called when a flight is durable, whether or not the machine
// will ever hear of it.
func (c *checker) committed(f *flight) {
	c.inActive(f)
	c.inOrder(f)
	c.keptBehindOld(f)
	for i, e := range f.of.Entries {
		handOf(e.Item).in = c.w.store
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
		c.effect(f, x)
	}
}

// effect checks an effect that is now in the log.
func (c *checker) effect(f *flight, x model.Effect) {
	s, m := c.w.store, x.Message
	c.arose("law 12")
	if h := handOf(f.of.Entries[x.Entry].Item); h.claim != nil && h.claim.Row.Key.Conflict {
		c.w.coverage.Add("fault", "a conflict that was let run takes effect")
	}
	c.keepsIdentity(f, x)
	if c.p.config.Unmarked {
		c.order(f, x)
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
	c.order(f, x)
	c.inPlace(f, x)
	c.besideOld(f, x)
}

// order checks that no message before this one in its lane has yet to come.
func (c *checker) order(f *flight, x model.Effect) {
	conf := c.p.config
	h := handOf(f.of.Entries[x.Entry].Item)
	d := h.delivery
	if h.claim != nil || conf.Lanes == machine.NoOrder || conf.OneAttempt || c.w.plan.Queue || c.w.store.Effects[x.Message.ID] != 1 {
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

// hasLeft reports whether a delivery no longer waits for its effect.
func (w *world) hasLeft(d *model.Delivery) bool {
	m := d.Message
	if d.Settled || m.Refused != "" || m.Conduct == model.SaysDuplicate {
		return true
	}
	marker, marked := w.store.Marked(m)
	return marked && marker.Outcome != model.Newer || w.store.Effects[m.ID] > 0 || w.store.Rows[model.RowKey{ID: m.ID}] != nil
}

// finish is the end of a run: everything is settled and the machine has ended.
func (w *world) finish() {
	if w.over = true; w.sender != nil && !w.sender.over {
		w.note("only the sender goes on")
		w.sender.wrapUp()
		return
	}
	if w.main != nil {
		w.main.conclude()
	}
	w.conclude()
}

// conclude holds all that happened against what is there.
func (w *world) conclude() {
	w.finished = true
	w.note("finished")
	for _, m := range w.messages {
		if w.checkForeign(m); !m.Foreign || w.plan.Config.OnFiltered != machine.EndSkip {
			w.checkMessage(m)
			w.checkCalls(m)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.store.Rows), model.RowKey.Compare) {
		r := w.store.Rows[key]
		if w.store.Passed[key.ID] {
			continue // a copy was counted on the row that had the marker then
		}
		if most := r.Settled + r.Doubted + w.store.Lost[key] + w.store.Parted[key.ID]; r.Repeats > most {
			w.broke("case 8", "the row of %s counts %d copies, and no more than %d can have come", key.ID, r.Repeats, most)
		}
	}
	w.checkStreams()
	w.checkAllOwners()
	w.checkLines()
	w.checkIntents()
	w.checkActs()
	w.checkProjection()
}

// checkMessage holds a message against the store, when all is over.
func (w *world) checkMessage(m *model.Message) {
	s := w.store
	effects, marker := s.Effects[m.ID], w.outcomeOf(m)
	if m.Failed > 0 {
		w.arose("law 4")
	}
	unmarked := w.plan.Config.Unmarked
	switch {
	case s.WasRemoved(m.ID):
		w.checkRemoved(m)
	case effects > 1 && !unmarked:
		w.broke("law 12", "%s has %d effects", m.ID, effects)
	case effects == 1 && marker != store.Applied && !unmarked:
		w.broke("law 12", "%s has an effect and its marker does not say so", m.ID)
	case effects == 0 && marker == store.Applied && !w.saidDuplicate(m.ID):
		w.broke("law 12", "%s is marked as applied and has no effect", m.ID)
	case effects == 0 && marker == 0 && w.keptAsConflict(m):
		w.arose("A7")
	case effects == 0 && marker == 0 && !w.saidDuplicate(m.ID) && s.Rows[model.RowKey{ID: m.ID}] == nil:
		w.broke("law 4", "%s is lost", m.Name())
	case marker == store.Parked && s.Rows[model.RowKey{ID: m.ID}] == nil:
		w.broke("law 12", "%s is marked as parked and has no row", m.ID)
	}
}

// saidDuplicate reports whether a handler says of the identity that its effect
// is there already.
func (w *world) saidDuplicate(id string) bool {
	return slices.ContainsFunc(w.messages, func(m *model.Message) bool { return m.ID == id && m.Conduct == model.SaysDuplicate })
}
