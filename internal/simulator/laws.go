package simulator

import (
	"maps"
	"slices"

	"github.com/semel-go/semel/internal/machine"
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
			c.broke("protocol", "%s trims entry %d, which it did not mark", showAction(a), i)
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
			c.broke("protocol", "%s has a row of entry %d", showAction(a), r.Entry)
			return
		}
		first, there := rowOf[r.Entry]
		if there && (!r.Repeat || r.Conflict != first.Conflict) {
			c.broke("protocol", "%s has two rows of entry %d", showAction(a), r.Entry)
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
		c.broke("law 12", "entry %d of f%d, %s and %s, has a row", i, f.of.Number, word(asNames[:], e.As), v.String())
	case there && r.Repeat && !conflict && c.w.store.rows[rowKey{id: identity(e.Item)}] == nil && !(keep && v.Already(store.Applied)) && !c.w.store.wasRemoved(identity(e.Item)):
		c.broke("law 12", "entry %d of f%d repeats a row that is not there", i, f.of.Number)
	case there && conflict && !r.Repeat && r.As == machine.AsDeadLettered && !handOf(e.Item).copied:
		c.broke("law 2", "entry %d of f%d is a conflict to be dead-lettered, and no copy of it is known", i, f.of.Number)
	case there && !conflict && !r.Repeat && r.Attempts != handOf(e.Item).attemptsWith(e.As):
		c.charged(handOf(e.Item), r.Attempts)
	case !there && setAside && v.Kind == store.Fresh:
		c.broke("law 12", "entry %d of f%d is %s and has no row", i, f.of.Number, word(asNames[:], e.As))
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
	for _, x := range f.tx.effects {
		if c.stepDone(f, x); x.part {
			c.inPlace(f, x)
			continue
		}
		c.effect(f, x)
	}
}

// effect checks an effect that is now in the log.
func (c *checker) effect(f *flight, x effect) {
	s, m := c.w.store, x.message
	c.arose("law 12")
	if h := handOf(f.of.Entries[x.entry].Item); h.claim != nil && h.claim.row.key.conflict {
		c.w.coverage.add("fault", "a conflict that was let run takes effect")
	}
	c.keepsIdentity(f, x)
	if c.p.config.Unmarked {
		c.order(f, x)
		return
	}
	if s.effects[m.id] != 1 {
		c.broke("law 12", "%s has %d effects", m.id, s.effects[m.id])
	}
	k, there := s.markers[m.id]
	if !there || k.outcome != store.Applied {
		c.broke("law 12", "%s has an effect and its marker does not say so", m.id)
	}
	if there && conflicts(k.print, f.of.Entries[x.entry].Item.Print) {
		c.broke("law 10", "%s has an effect of another content", m.id)
	}
	c.order(f, x)
	c.inPlace(f, x)
	c.besideOld(f, x)
}

// order checks that no message before this one in its lane has yet to come.
func (c *checker) order(f *flight, x effect) {
	conf := c.p.config
	h := handOf(f.of.Entries[x.entry].Item)
	d := h.delivery
	if h.claim != nil || conf.Lanes == machine.NoOrder || conf.OneAttempt || c.w.plan.queue || c.w.store.effects[x.message.id] != 1 {
		return
	}
	if d.position > 0 {
		c.arose("law 8")
	}
	for _, before := range d.lane.log[:d.position] {
		if c.inLine(before, x.message.route) && !c.w.hasLeft(before) && !c.passedOver(f, before) {
			c.broke("law 8", "%s at %s/%d takes effect before %s at %d", x.message.name(), d.lane.id, d.position,
				before.message.name(), before.position)
			return
		}
	}
}

// hasLeft reports whether a delivery no longer waits for its effect.
func (w *world) hasLeft(d *delivery) bool {
	m := d.message
	if d.settled || m.refused != "" || m.conduct == saysDuplicate {
		return true
	}
	marker, marked := w.store.marked(m)
	return marked && marker.outcome != newer || w.store.effects[m.id] > 0 || w.store.rows[rowKey{id: m.id}] != nil
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
		if w.checkForeign(m); !m.foreign || w.plan.config.OnFiltered != machine.EndSkip {
			w.checkMessage(m)
			w.checkCalls(m)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.store.rows), rowKey.compare) {
		r := w.store.rows[key]
		if w.store.passed[key.id] {
			continue // a copy was counted on the row that had the marker then
		}
		if most := r.settled + r.doubted + w.store.lost[key] + w.store.parted[key.id]; r.repeats > most {
			w.broke("case 8", "the row of %s counts %d copies, and no more than %d can have come", key.id, r.repeats, most)
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
func (w *world) checkMessage(m *message) {
	s := w.store
	effects, marker := s.effects[m.id], w.outcomeOf(m)
	if m.failed > 0 {
		w.arose("law 4")
	}
	unmarked := w.plan.config.Unmarked
	switch {
	case s.wasRemoved(m.id):
		w.checkRemoved(m)
	case effects > 1 && !unmarked:
		w.broke("law 12", "%s has %d effects", m.id, effects)
	case effects == 1 && marker != store.Applied && !unmarked:
		w.broke("law 12", "%s has an effect and its marker does not say so", m.id)
	case effects == 0 && marker == store.Applied && !w.saidDuplicate(m.id):
		w.broke("law 12", "%s is marked as applied and has no effect", m.id)
	case effects == 0 && marker == 0 && w.keptAsConflict(m):
		w.arose("A7")
	case effects == 0 && marker == 0 && !w.saidDuplicate(m.id) && s.rows[rowKey{id: m.id}] == nil:
		w.broke("law 4", "%s is lost", m.name())
	case marker == store.Parked && s.rows[rowKey{id: m.id}] == nil:
		w.broke("law 12", "%s is marked as parked and has no row", m.id)
	}
}

// saidDuplicate reports whether a handler says of the identity that its effect
// is there already.
func (w *world) saidDuplicate(id string) bool {
	return slices.ContainsFunc(w.messages, func(m *message) bool { return m.id == id && m.conduct == saysDuplicate })
}
