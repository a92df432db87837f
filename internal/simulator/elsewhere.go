package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/store"
)

// elsewhere simulates another process that handles a message with the same identity: the process writes the marker,
// works for some time, and commits or rolls back.
func (w *world) elsewhere(m *model.Message, most time.Duration) {
	if w.store.Down || w.closing || m.Refused != "" || m.Conduct == model.SaysDuplicate || w.Plan.Config.Unmarked {
		return
	}
	if w.store.Locks[m.ID] != nil || w.store.Judge(m.ID, semel.Fingerprint{}).Kind != store.Fresh || !w.formerlyFree(m) || w.store.Old(m) || m.Age > w.now {
		return
	}
	if m.Former != "" && !w.TwoFormers(m) && w.choices.Flip() {
		w.olderRelease(m, most)
		return
	}
	as := []machine.As{machine.AsApplied, machine.AsApplied, machine.AsParked, machine.AsDiscarded}[w.choices.Below(4)]
	if w.Plan.Config.Inbox && w.choices.Chance(3) {
		as = machine.AsReceived // as with Accept in a transaction of the caller
	}
	if w.Plan.Calls || w.Plan.Steps > 0 { // other processes make no calls and run no steps
		as = machine.AsReceived
	}
	if w.Plan.Rebuilds { // a parked message would be missing in one generation
		as = machine.AsApplied
	}
	as, free := w.asElsewhere(m, as)
	if !free {
		return
	}
	t := w.store.Opened(&model.Transaction{Open: true})
	if m.Version > 0 {
		w.store.Hold(m.Stream, t)
	}
	print := m.Print
	if print.Version != 0 {
		print.Version, print.Sum[15] = 1, 1
	}
	w.store.Write(t, model.Mark{ID: m.ID, As: as, Print: print, At: w.now})
	if m.Former != "" {
		w.store.Write(t, model.Mark{ID: m.Former, As: as, Print: print, At: w.now})
	}
	long, commits := w.choices.Wait(most), w.choices.Often(3)
	w.recordFault("copy elsewhere", "%s %s for %v, commits: %v", m.Name(), trace.Word(trace.AsNames[:], as), long, commits)
	w.schedule(long, func() {
		if !t.Open {
			return
		}
		if commits {
			w.commitElsewhere(t, m, as)
		}
		w.end(t)
	})
}

func (w *world) commitElsewhere(t *model.Transaction, m *model.Message, as machine.As) {
	var rows []machine.Row
	if as == machine.AsApplied {
		if !w.intendElsewhere(t, m) {
			return
		}
		t.Effects = append(t.Effects, model.Effect{Message: m})
	} else {
		rows = []machine.Row{{As: as}}
	}
	w.store.Apply(t, nil, rows, func(r *machine.Row) *model.Row {
		is := &model.Row{Key: model.RowKey{ID: m.ID}, As: r.As, Message: m, Print: t.Marks[0].Print, Changed: w.now}
		is.Dates(w.storeTime(), w.dueElsewhere(r.As))
		return is
	})
	w.receive(t)
	if as == machine.AsApplied || as == machine.AsDiscarded {
		w.step(m, t.Marks[0].Print)
	}
	w.notify()
	w.logLine("committed elsewhere: %s %s", m.Name(), trace.Word(trace.AsNames[:], as))
}

// asElsewhere returns the outcome with which another process can mark a version. If the other process must wait for a
// transaction, the bool is false.
func (w *world) asElsewhere(m *model.Message, as machine.As) (machine.As, bool) {
	if m.Version == 0 || as != machine.AsApplied && as != machine.AsDiscarded {
		return as, true
	}
	s := w.store.Stream(m.Stream)
	switch {
	case s.Held():
		return as, false
	case m.Version > s.At.Version+1:
		return machine.AsBlocked, true
	case m.Version <= s.At.Version:
		return machine.AsDiscarded, true
	}
	return as, true
}

// dueElsewhere returns the delay of a row that another process writes.
func (w *world) dueElsewhere(as machine.As) time.Duration {
	if as == machine.AsBlocked {
		return w.Plan.Config.Gap
	}
	return 0
}

// overtaken lets another process write the marker of a message while the batch of the message waits for its next
// attempt, after a failed commit. In its next attempt, the batch finds a marker that it did not write.
func (w *world) overtaken(f *flight) {
	if w.Plan.Has[plan.TroubleElsewhere] && w.choices.Flip() {
		w.elsewhere(f.message(w.choices.Below(len(f.of.Entries))), 5*time.Millisecond)
	}
}

// intendElsewhere writes the intents of a message that another process applies. The result of intendElsewhere says
// whether the intents were written.
func (w *world) intendElsewhere(t *model.Transaction, m *model.Message) bool {
	return w.sender == nil || w.intend(t, m, "", causeOf(m)) == nil
}

// drawPast gives some identities a marker from the time before the run.
func (w *world) drawPast() {
	past := []store.Outcome{store.Applied, store.Parked, model.Newer, store.DeadLettered, store.Discarded}
	if w.Plan.Config.Inbox {
		past = append(past, store.Waiting)
	}
	rate := 40
	if w.Plan.Rebuilds { // without this condition, the newer release would have to support generations
		past = slices.DeleteFunc(past, func(o store.Outcome) bool { return o == model.Newer })
	}
	if w.Plan.Streams > 0 { // later versions of a stream must not be applied before a version that waits
		rate, past = 12, append(past, model.Newer, model.Newer, model.Newer, model.Newer, model.Newer, model.Newer)
	}
	for _, m := range w.Messages {
		if m.Refused != "" || m.Conduct == model.SaysDuplicate || !w.choices.Chance(rate) || w.store.Judge(m.ID, m.Print).Kind != store.Fresh {
			continue
		}
		v := past[w.choices.Below(len(past))]
		if v == store.Applied && m.Version > 0 && !w.isNext(m) {
			continue
		}
		print := m.Print
		if print.Version != 0 {
			print.Sum[15] = 1
		}
		w.store.Markers[m.ID] = model.Marker{Outcome: v, Print: print, At: m.Age}
		if v == model.Newer {
			w.schedule(w.choices.Wait(longestNewer), func() { w.endNewer(m) })
			continue
		}
		w.writeOutcome(m, v)
	}
}

// longestNewer is the longest time until the newer release ends a message that it has marked.
const longestNewer = 3 * time.Minute

// endNewer lets the newer release end a message whose marker it wrote. The newer release applies or parks the message,
// or removes the marker.
func (w *world) endNewer(m *model.Message) {
	marker := w.store.Markers[m.ID]
	if marker.Outcome != model.Newer {
		return
	}
	w.store.Changes[m.ID]++
	switch w.choices.Below(3) {
	case 0:
		delete(w.store.Markers, m.ID)
		w.logLine("the newer release takes the marker of %s back", m.Name())
		return
	case 1:
		marker.Outcome = store.Applied
		if m.Version > 0 && !w.isNext(m) {
			marker.Outcome = store.Parked
		}
	default:
		marker.Outcome = store.Parked
	}
	w.store.Markers[m.ID] = marker
	w.writeOutcome(m, marker.Outcome)
	w.logLine("the newer release ends %s as %s", m.Name(), marker.Outcome)
}

// writeOutcome writes the effect or the row that belongs to another process's marker.
func (w *world) writeOutcome(m *model.Message, o store.Outcome) {
	if o == store.Applied {
		w.store.Effects[m.ID]++
		w.past[m.ID] = true
		w.step(m, w.store.Markers[m.ID].Print)
		return
	}
	r := &model.Row{Key: model.RowKey{ID: m.ID}, As: machine.AsParked, Message: m, Print: w.store.Markers[m.ID].Print}
	r.Dates(w.storeTime(), 0)
	switch o {
	case store.Waiting:
		r.As = machine.AsWaiting
		r.Dates(w.storeTime(), w.choices.Wait(w.Plan.Span))
	case store.Discarded:
		r.As = machine.AsDiscarded
	case store.DeadLettered:
		r.As = machine.AsDeadLettered
	}
	w.store.Put(r)
}

// olderRelease lets a process of the previous release handle a message. A process of the previous release knows only
// the previous identity, and writes a marker only for that identity.
func (w *world) olderRelease(m *model.Message, most time.Duration) {
	t := &model.Transaction{Open: true}
	w.store.Write(t, model.Mark{ID: m.Former, As: machine.AsApplied, Print: formerPrint(m)})
	long, commits := w.choices.Wait(most), w.choices.Often(3)
	w.recordFault("copy in the release before", "%s for %v, commits: %v", m.Name(), long, commits)
	w.schedule(long, func() {
		if !t.Open {
			return
		}
		if commits {
			t.Effects = append(t.Effects, model.Effect{Message: m})
			w.store.Apply(t, nil, nil, nil)
			w.past[m.ID] = true // the previous release writes no intents
			w.logLine("committed in the release before: %s", m.Name())
		}
		w.end(t)
	})
}

// drawRule draws the version of the rule for a process's fingerprints. Fingerprints of different versions are
// not compared. If messages have previous identities, all processes use version 1.
func (w *world) drawRule() uint8 {
	if w.Plan.Formers {
		return 1
	}
	return uint8(1 + w.choices.Below(2))
}

// formerOf returns the key of an item's previous identity in the store. If the item has no previous identity,
// formerOf returns a unique name.
func formerOf(i *machine.Item) string {
	m := handOf(i).delivery.Message
	if m.Former == "" {
		return "none of " + m.ID
	}
	return m.Former
}

// formerlyFree reports whether the previous identity of a message has no marker, and no transaction is writing such a
// marker.
func (w *world) formerlyFree(m *model.Message) bool {
	return m.Former == "" || w.store.Locks[m.Former] == nil && w.store.Judge(m.Former, formerPrint(m)).Kind == store.Fresh
}

// outcomeOf returns the outcome of a message's marker; 0 if there is no marker. If only the previous identity has a
// marker, the result is the outcome for the content that was marked.
func (w *world) outcomeOf(m *model.Message) store.Outcome {
	own, there := w.store.Markers[m.ID]
	if there || m.Former == "" {
		return own.Outcome
	}
	for _, o := range w.Messages {
		former, there := w.store.Markers[o.Former]
		if there && o.ID == m.ID && !o.Foreign && !model.Conflicts(former.Print, formerPrint(o)) {
			return former.Outcome
		}
	}
	return 0
}

// keptAsConflict reports whether a message conflicts with the marker of its previous identity, and whether the message
// was stored or acked as a conflict.
func (w *world) keptAsConflict(m *model.Message) bool {
	if m.Former == "" || !model.Conflicts(w.store.Markers[m.Former].Print, formerPrint(m)) {
		return false
	}
	return w.Plan.Config.OnConflict == machine.EndKeepFirst || w.store.Rows[model.RowKey{ID: m.ID, Conflict: true, Print: formerPrint(m)}] != nil
}

// formerPrint returns the fingerprint of a message for its previous identity. All simulated processes compute this
// fingerprint in the same way, also processes with a newer rule for fingerprints.
func formerPrint(m *model.Message) semel.Fingerprint {
	print := m.Print
	print.Version, print.Sum[15] = 1, 1
	return print
}

// cutoff returns the time before which ended messages may be removed. The result is the time of the oldest delivery
// that is unread or not acked, minus the retention.
func (w *world) cutoff() time.Duration {
	oldest := w.now
	for _, l := range w.Source.Lanes {
		for _, d := range l.Log {
			if !d.Settled && d.Of == nil {
				oldest = min(oldest, d.Produced)
			}
		}
	}
	return oldest - w.Plan.Keep
}

// From time to time, reap raises the time before which markers may be removed, and begins to remove such markers.
func (w *world) reap() {
	if w.Plan.Keep == 0 || w.law != nil || w.finished {
		return
	}
	w.schedule(w.Plan.Keep/4+w.choices.Wait(w.Plan.Keep), w.reap)
	to := w.cutoff()
	if w.store.Down || to <= w.store.Low {
		return
	}
	w.store.Low = to
	w.logLine("low-water mark at %v", to)
	if !w.calm && w.choices.Chance(6) {
		w.recordFault("the reaper dies before it removes anything", "")
		return
	}
	w.schedule(w.choices.Wait(w.Plan.Lag), func() { w.slice(w.choices.Between(1, 8)) })
}

// slice removes some of the old markers, and schedules its next call.
func (w *world) slice(most int) {
	s := w.store
	if s.Down || w.finished {
		return
	}
	due := s.MayGo()
	for _, id := range due[:min(most, len(due))] {
		w.remove(id)
	}
	switch {
	case len(due) <= most:
	case !w.calm && w.choices.Chance(10):
		w.recordFault("the reaper dies between two slices", "")
	default:
		w.schedule(w.choices.Wait(w.Plan.Lag), func() { w.slice(most) })
	}
}

// remove removes a marker with its rows.
func (w *world) remove(id string) {
	s := w.store
	w.coverage.Add("fault", "marker removed")
	w.logLine("removed: %s", id)
	s.Gone[id] = model.Removed{Marker: s.Markers[id], Times: s.Gone[id].Times + 1}
	delete(s.Markers, id)
	s.Changes[id]++
	s.Inbox = slices.DeleteFunc(s.Inbox, func(r *model.Row) bool {
		if r.Key.ID != id {
			return false
		}
		w.coverage.Add("fault", "row removed")
		if r.Waits() || r.As == machine.AsParked {
			w.broke("law 4", "the row of %s is removed, and has not ended", id)
		}
		delete(s.Rows, r.Key)
		s.GoneRows[r.Key] = true
		return true
	})
}
