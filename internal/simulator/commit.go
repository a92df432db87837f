package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/store"
)

// commit sends COMMIT. The simulator draws the outcome of the COMMIT, also if the process dies before the response.
func (f *flight) commit(a machine.Commit) {
	w := f.p.w
	f.phase, f.trim = committing, a.Trim
	f.tx.Committing = true
	f.send(a)
	w.schedule(w.choices.Wait(w.Plan.Lag), func() {
		if f.p.over && w.choices.Flip() || !f.p.over && f.p.diesAt(faults.BeforeCommit) {
			w.end(f.tx)
			return
		}
		f.runInGeneration(func() { f.decide(a) })
	})
}

// decide draws the outcome of a COMMIT that has reached the store.
func (f *flight) decide(a machine.Commit) {
	w := f.p.w
	if f.outside() {
		f.decideOutside(a)
		return
	}
	refusal, refused := f.refusal()
	if !refused {
		refusal, refused = f.rowRefusal(a)
	}
	switch {
	case refused:
		w.end(f.tx)
		if f.tx.Cut && !w.store.Down {
			w.coverage.Add("fault", "commit of a transaction that was ended")
		}
		if refusal.Outcome == store.CommitUnknown {
			f.loseCounts(a)
		}
		f.sendEnded(refusal)
	case f.claimsLost(a):
		w.recordFault("commit refused because of a claim", "f%d", f.of.Number)
		w.end(f.tx)
		f.sendEnded(machine.Ended{Outcome: store.NotCommitted, Class: store.ClassClaimLost, Culprit: -1})
	case w.hurt(plan.TroubleUnknown):
		f.unknown(a)
	case w.hurt(plan.TroubleCommit):
		class := []store.Class{store.ClassContended, store.ClassDown}[w.choices.Below(2)]
		w.recordFault("commit fails", "f%d %s", f.of.Number, class.String())
		w.end(f.tx)
		f.sendEnded(machine.Ended{Outcome: store.NotCommitted, Class: class, Culprit: -1})
	default:
		f.apply(a)
		if !f.p.over && f.p.diesAt(faults.CommitReplyLost) {
			return
		}
		f.sendEnded(machine.Ended{Outcome: store.Committed, Culprit: -1, Freed: f.unblocked})
	}
}

// refusal returns the reason why the store must reject the COMMIT.
func (f *flight) refusal() (machine.Ended, bool) {
	w := f.p.w
	e := machine.Ended{Outcome: store.NotCommitted, Culprit: -1}
	switch {
	case f.tx.Cut || !f.tx.Open || w.store.Down:
		e.Class = store.ClassDown
		if w.choices.Flip() {
			e.Outcome = store.CommitUnknown
		}
		return e, true
	case f.tx.Broken:
		e.Class = store.ClassAborted
		return e, true
	}
	for _, x := range f.tx.Effects {
		if x.Message.Conduct == model.FailsAtCommit && f.acts(x.Entry, x.Message) {
			x.Message.Fail()
			w.recordFault("commit refused", "f%d because of %s", f.of.Number, x.Message.Name())
			e.Class = []store.Class{store.ClassPermanent, store.ClassRetry}[x.Message.Number%2]
			if w.Plan.Named {
				e.Culprit = x.Entry
			}
			return e, true
		}
		if x.Message.FailsLate() {
			return f.late(x), true
		}
	}
	return e, false
}

// rowRefusal returns the error of a store that rejects a row, which no handler has caused.
func (f *flight) rowRefusal(a machine.Commit) (machine.Ended, bool) {
	w := f.p.w
	e := machine.Ended{Outcome: store.NotCommitted, Culprit: -1, Class: store.ClassRetry}
	rows := slices.DeleteFunc(slices.Clone(a.Rows), func(r machine.Row) bool { return slices.Contains(f.call.Fresh, r.Entry) })
	if len(rows) == 0 || !w.hurt(plan.TroubleRow) {
		return e, false
	}
	r := rows[w.choices.Below(len(rows))]
	w.recordFault("row refused", "f%d because of %s", f.of.Number, f.message(r.Entry).Name())
	if w.choices.Flip() {
		e.Class = store.ClassPermanent
	}
	if w.Plan.Named {
		e.Culprit = r.Entry
	}
	return e, true
}

func (f *flight) late(x model.Effect) machine.Ended {
	x.Message.Fail()
	f.p.w.recordFault("commit refused as if by others or the store", "f%d because of %s", f.of.Number, x.Message.Name())
	e := machine.Ended{Outcome: store.NotCommitted, Class: store.ClassContended, Culprit: -1}
	if x.Message.Conduct == model.AlwaysDown {
		e.Class = store.ClassDown
	}
	if x.Message.Number%3 == 1 {
		e.Culprit = x.Entry
	}
	return e
}

// unknown loses the response to a COMMIT. The commit succeeds, or fails, or is decided later while the
// transaction stays open.
func (f *flight) unknown(a machine.Commit) {
	w := f.p.w
	commits := w.choices.Flip()
	wait := time.Duration(0)
	if w.choices.Flip() {
		wait = w.choices.Wait(time.Second)
	}
	w.recordFault("commit unknown", "f%d, commits: %v, after %v", f.of.Number, commits, wait)
	f.loseCounts(a)
	settle := func() {
		if commits && f.claimsLost(a) {
			f.lateStep()
		}
		if commits && !f.tx.Cut && !f.claimsLost(a) {
			f.apply(a)
			f.unheard()
		}
		w.end(f.tx)
		if !commits {
			w.overtaken(f)
		}
		w.wrapUp()
	}
	if wait == 0 {
		settle()
	} else {
		w.schedule(wait, settle)
	}
	class := store.ClassDown
	if f.outside() {
		class = store.ClassNone
	}
	f.sendEnded(machine.Ended{Outcome: store.CommitUnknown, Class: class, Culprit: -1})
}

// unheard records that the process did not learn when its waiting rows can be claimed.
func (f *flight) unheard() {
	for _, r := range f.p.w.store.Inbox {
		if r.By == f.p && r.Waits() {
			r.By = nil
		}
	}
}

// apply commits a batch.
func (f *flight) apply(a machine.Commit) {
	w := f.p.w
	ends, rows := f.split(a.Rows)
	w.store.Apply(f.tx, a.Trim, rows, f.rowOf)
	f.enterLines(rows)
	for i := range ends {
		c := handOf(f.of.Entries[ends[i].Entry].Item).claim
		c.Row.Calls.End(f.callEnd, store.Token(f.endedTokens[ends[i].Entry]))
		f.checkClaimEnd(c, &ends[i])
		w.store.EndClaim(c, &ends[i], f.p, w.now, w.storeTime())
		f.unblocked = w.store.Advance(c.Row, f.p, w.storeTime()) || f.unblocked
	}
	f.moveStreams(a)
	f.p.check.checkCommitted(f)
	f.checkTwins()
	w.receive(f.tx)
	w.releaseLocks(f.tx)
	w.notify()
}

// rowOf converts a row of a commit to a row of the store.
func (f *flight) rowOf(r *machine.Row) *model.Row {
	i := f.of.Entries[r.Entry].Item
	is := &model.Row{Key: f.keyOf(*r), As: r.As, Reason: r.Reason, Message: f.message(r.Entry), Print: i.Print, Changed: f.p.w.now, Attempts: r.Attempts, By: f.p, Quiet: f.isReplayWithoutEffects(r.Entry)}
	is.Dates(f.p.w.storeTime(), r.After)
	if r.Reason == reasonname.Expired {
		is.From = handOf(i).delivery
	}
	return is
}

// keyOf returns the key of a row in the store.
func (f *flight) keyOf(r machine.Row) model.RowKey {
	i := f.of.Entries[r.Entry].Item
	if r.Conflict {
		return model.RowKey{ID: identityOf(i), Conflict: true, Print: i.Print}
	}
	return model.RowKey{ID: identityOf(i)}
}

// loseCounts records the duplicates that a commit with an unknown outcome may not have counted.
func (f *flight) loseCounts(a machine.Commit) {
	for _, r := range a.Rows {
		if r.Repeat {
			f.p.w.store.Lost[f.keyOf(r)]++
		}
	}
}

// sendEnded sends the machine the event Ended, which says how a batch ended.
func (f *flight) sendEnded(e machine.Ended) {
	e.Flight = f.of
	f.p.scheduleSoon(func() {
		e.Until = f.renew()
		f.drop()
		if e.Outcome == store.Committed {
			f.p.feedAt(e, faults.AfterCommit)
			f.betweenSteps()
			return
		}
		f.p.feed(e)
	})
}

// moveStreams moves the streams of a committed batch as far as their versions have no gap. Rows that waited for these
// versions are unblocked.
func (f *flight) moveStreams(a machine.Commit) {
	s := f.p.w.store
	asked := map[string]bool{}
	for i, e := range f.of.Entries {
		if !f.asks(i) {
			continue
		}
		m := f.message(i)
		asked[m.Stream] = true
		if at := &s.Stream(m.Stream).At; f.nextVersions[i] && m.Version == at.Version+1 && f.ends(i, a) {
			*at = model.Place{Version: m.Version, Print: e.Item.Print}
		}
	}
	for i := range f.of.Entries { // in the order of the entries, so that the run depends only on the seed
		if name := f.message(i).Stream; asked[name] {
			delete(asked, name)
			f.unblocked = s.FreeTurns(name, f.p, f.p.w.storeTime()) || f.unblocked
		}
	}
	if f.unblocked {
		f.p.w.coverage.Add("fault", "rows freed")
	}
}

// ends reports whether the commit applies or skips an entry.
func (f *flight) ends(i int, a machine.Commit) bool {
	if slices.Contains(a.Trim, i) {
		return false
	}
	if handOf(f.of.Entries[i].Item).claim == nil {
		return true
	}
	return slices.ContainsFunc(a.Rows, func(r machine.Row) bool {
		return r.Entry == i && (r.As == machine.AsApplied || r.As == machine.AsDuplicate || r.As == machine.AsDiscarded)
	})
}

// enterLines appends the rows of a commit to their lines. A line is a queue of messages that are processed in order.
func (f *flight) enterLines(rows []machine.Row) {
	for _, r := range rows {
		line := f.lineName(r.Entry)
		if line == "" || r.Repeat || r.Conflict || !slices.Contains([]machine.As{machine.AsReceived, machine.AsWaiting, machine.AsBlocked, machine.AsParked}, r.As) {
			continue
		}
		f.unblocked = f.p.w.store.Enter(f.p.w.store.Rows[f.keyOf(r)], line, f.p.w.now) || f.unblocked
	}
}

// isNext reports whether a message has the next version of its stream, and no transaction has locked the
// stream.
func (w *world) isNext(m *model.Message) bool {
	s := w.store.Stream(m.Stream)
	return !s.Held() && s.At.Version+1 == m.Version
}

// step moves a stream past a message that another process has ended, if the message has the next version.
func (w *world) step(m *model.Message, print semel.Fingerprint) {
	if s := w.store.Stream(m.Stream); m.Version > 0 && s.At.Version+1 == m.Version {
		s.At = model.Place{Version: m.Version, Print: print}
		w.ledger[m.Stream] = m.Version
		w.store.FreeTurns(m.Stream, nil, w.storeTime())
	}
}
