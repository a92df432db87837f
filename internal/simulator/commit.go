package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// commit sends COMMIT. What becomes of it the world decides even when the
// process dies meanwhile.
func (f *flight) commit(a machine.Commit) {
	w := f.p.w
	f.phase, f.trim = committing, a.Trim
	f.tx.committing = true
	w.after(w.choices.wait(w.plan.lag), func() {
		if f.p.over && w.choices.flip() || !f.p.over && w.at(BeforeCommit) {
			w.end(f.tx)
			return
		}
		f.decide(a)
	})
}

// decide draws what becomes of a COMMIT that has reached the store.
func (f *flight) decide(a machine.Commit) {
	w := f.p.w
	refusal, refused := f.refusal()
	switch {
	case refused:
		w.end(f.tx)
		if refusal.Outcome == machine.Unknown {
			f.loseCounts(a)
		}
		f.answer(refusal)
	case w.hurt(troubleUnknown):
		f.unknown(a)
	case w.hurt(troubleCommit):
		class := []machine.Class{machine.Contended, machine.Down}[w.choices.below(2)]
		w.fault("commit fails", "f%d %s", f.of.Number, word(classNames[:], class))
		w.end(f.tx)
		f.answer(machine.Ended{Outcome: machine.NotCommitted, Class: class, Culprit: -1})
	default:
		f.apply(a)
		if !f.p.over && w.at(CommitReplyLost) {
			return
		}
		f.answer(machine.Ended{Outcome: machine.Committed, Culprit: -1})
	}
}

// refusal returns why the store must refuse the COMMIT.
func (f *flight) refusal() (machine.Ended, bool) {
	w := f.p.w
	e := machine.Ended{Outcome: machine.NotCommitted, Culprit: -1}
	switch {
	case f.tx.cut || !f.tx.open || w.store.down:
		e.Class = machine.Down
		if w.choices.flip() {
			e.Outcome = machine.Unknown
		}
		return e, true
	case f.tx.broken:
		e.Class = machine.Aborted
		return e, true
	}
	for _, x := range f.tx.effects {
		if x.message.conduct == failsAtCommit && x.message.times > 0 {
			x.message.fail()
			w.fault("commit refused", "f%d because of %s", f.of.Number, x.message.name())
			e.Class = []machine.Class{machine.Permanent, machine.Retry}[x.message.number%2]
			if w.plan.named {
				e.Culprit = x.entry
			}
			return e, true
		}
	}
	return e, false
}

// unknown loses the reply: of a commit that was, of one that was not, or of
// one that is decided later, while the transaction stays open.
func (f *flight) unknown(a machine.Commit) {
	w := f.p.w
	commits := w.choices.flip()
	wait := time.Duration(0)
	if w.choices.flip() {
		wait = w.choices.wait(time.Second)
	}
	w.fault("commit unknown", "f%d, commits: %v, after %v", f.of.Number, commits, wait)
	f.loseCounts(a)
	settle := func() {
		if commits && !f.tx.cut {
			f.apply(a)
		}
		w.end(f.tx)
	}
	if wait == 0 {
		settle()
	} else {
		w.after(wait, settle)
	}
	f.answer(machine.Ended{Outcome: machine.Unknown, Class: machine.Down, Culprit: -1})
}

// apply makes the flight durable.
func (f *flight) apply(a machine.Commit) {
	w := f.p.w
	w.store.apply(f.tx, a.Trim, a.Rows, f.keyOf)
	f.p.check.committed(f)
	w.closed(f.tx)
}

// keyOf returns the key of a row.
func (f *flight) keyOf(r machine.Row) rowKey {
	i := f.of.Entries[r.Entry].Item
	if r.Conflict {
		return rowKey{identity(i), true, i.Print}
	}
	return rowKey{id: identity(i)}
}

// loseCounts remembers what a commit of unknown outcome may not have counted.
func (f *flight) loseCounts(a machine.Commit) {
	for _, r := range a.Rows {
		if there := f.p.w.store.rows[f.keyOf(r)]; there != nil && r.Repeat {
			there.lost++
		}
	}
}

// answer tells the machine how the flight ended.
func (f *flight) answer(e machine.Ended) {
	e.Flight = f.of
	f.p.soon(func() {
		f.drop()
		if e.Outcome == machine.Committed {
			f.p.feedAt(e, AfterCommit)
			return
		}
		f.p.feed(e)
	})
}
