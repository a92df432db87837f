package simulator

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// person lets a person act on a row: retry a parked row, end a claim, or discard a waiting row.
func (w *world) person() {
	s := w.store
	if !w.Plan.Config.Inbox || len(s.Inbox) == 0 || s.Down {
		return
	}
	r := s.Inbox[w.choices.Below(len(s.Inbox))]
	if i := slices.IndexFunc(s.Inbox, func(r *model.Row) bool { return r.Reason == semel.ReasonOutcomeUnknown }); i >= 0 && w.choices.Flip() {
		r = s.Inbox[i]
	}
	m, marked := s.Markers[r.Key.ID]
	r.Revision++
	switch {
	case r.Key.Conflict || r.ByHand || w.Plan.Twins && !r.Waits() && s.MayRun(r) != nil:
	case r.As == machine.AsParked && marked && m.Outcome == store.Parked && r.Reason == semel.ReasonOutcomeUnknown:
		w.resolve(r)
	case r.Overdue() && w.choices.Flip():
		w.skip(r)
	case r.KeepsBack() && w.choices.Chance(3):
		w.pass(r)
	case (r.As == machine.AsParked || r.Overdue()) && marked && m.Outcome == store.Parked && r.Reason != reasonname.Expired:
		verb := "retries"
		if r.Reason == reasonname.Suppressed {
			verb, r.OfReplay = "sends what was suppressed", false
		}
		w.recordFault("a person "+verb, "%s", r.Key.ID)
		r.As, r.Reason, r.By = machine.AsWaiting, "", nil
		r.Dates(w.storeTime(), 0)
		s.Remember(r.Key.ID, store.Waiting, model.Marker{Print: r.Print, At: w.now})
	case r.Waits() && r.Token != 0 && w.choices.Flip():
		w.recordFault("a person ends a claim", "%s", r.Key.ID)
		r.As, r.Token, r.By = machine.AsReceived, 0, nil
		r.Dates(w.storeTime(), 0)
	case w.main != nil && r.As == machine.AsParked && r.Reason == reasonname.Suppressed && marked && m.Outcome == store.Parked && w.choices.Chance(3):
		// the intent of the row stays suppressed
	case w.main != nil && r.Waits() && r.Token == 0 && w.choices.Flip():
		w.suppress(r)
	case r.Waits() && !(w.Plan.Twins && w.inPart(r)) && w.choices.Chance(4):
		w.recordFault("a person discards", "%s", r.Key.ID)
		s.CloseMarker(r)
		r.As, r.Token = machine.AsDiscarded, 0
		r.Changed = w.now
		s.Advance(r, nil, w.storeTime())
		w.wrapUp()
	}
}

// pass lets a person unblock the messages that wait behind a row in the queue of its key or lane.
func (w *world) pass(r *model.Row) {
	w.recordFault("a person lets followers pass", "%s", r.Key.ID)
	if r.Follows() {
		r.As, r.Reason, r.By = machine.AsReceived, "", nil
		r.Dates(w.storeTime(), 0)
	}
	r.Place = 0
	w.store.Advance(r, nil, w.storeTime())
	w.notify()
}

// skip lets a person skip missing versions of a stream, up to the first waiting version.
func (w *world) skip(r *model.Row) {
	name := r.Message.Stream
	s := w.store.Stream(name)
	if s.Held() {
		return
	}
	first := r.Message.Version
	for _, other := range w.store.Inbox {
		if other.WaitsForTurn() && other.Message.Stream == name {
			first = min(first, other.Message.Version)
		}
	}
	w.recordFault("a person skips", "%s to %d", name, first-1)
	s.At = model.Place{Version: first - 1}
	w.ledger[name] = first - 1
	w.store.FreeTurns(name, nil, w.storeTime())
	w.notify()
}

// resolve lets a person record the outcome of calls whose outcome is unknown.
func (w *world) resolve(r *model.Row) {
	s, m := w.store, r.Message
	r.Started, r.Calls.Token = 0, 0
	if w.provider.charges[m.ID] > 0 {
		w.recordFault("a person says that it was done", "%s", r.Key.ID)
		r.As, r.Reason, r.Changed, r.By = machine.AsApplied, "", w.now, nil
		r.Calls.Finished = r.Calls.Started
		s.Remember(r.Key.ID, store.Applied, model.Marker{Print: r.Print, At: w.now})
		s.Effects[m.ID]++
		s.Advance(r, nil, w.storeTime())
		w.wrapUp()
		return
	}
	w.recordFault("a person says that it was not done", "%s", r.Key.ID)
	w.deny(m)
	r.As, r.Reason, r.By = machine.AsWaiting, "", nil
	r.Dates(w.storeTime(), 0)
	r.Calls = calls.Ledger{}
	s.Remember(r.Key.ID, store.Waiting, model.Marker{Print: r.Print, At: w.now})
}

// actsOnTwins lets persons act repeatedly on rows of identities that have several rows.
func (w *world) actsOnTwins() {
	if !w.Plan.Twins {
		return
	}
	w.schedule(w.choices.Wait(w.Plan.Span/16), func() {
		if w.calm || w.quiet || w.law != nil || w.finished {
			return
		}
		if !w.store.Down {
			w.actOnTwin()
		}
		w.actsOnTwins()
	})
}

// actOnTwin lets a person act on a row of an identity with several rows. A person acts only on a row that no batch has
// locked.
func (w *world) actOnTwin() {
	s := w.store
	rows := map[string]int{}
	for _, r := range s.Inbox {
		rows[r.Key.ID]++
	}
	hand := w.choices.Chance(12)
	applied := hand || w.choices.Chance(6)
	may := slices.DeleteFunc(slices.Clone(s.Inbox), func(r *model.Row) bool {
		return rows[r.Key.ID] < 2 && !r.Key.Conflict || applied != (s.Markers[r.Key.ID].Outcome == store.Applied) || s.Locks[r.Key.ID] != nil || r.Message.Conduct == model.SaysDuplicate || r.Reason == reasonname.Suppressed ||
			s.Markers[r.Key.ID].Outcome == model.Newer || r.Message.Version > 0 && s.Stream(r.Message.Stream).Held()
	})
	if len(may) == 0 {
		return
	}
	r := may[w.choices.Below(len(may))]
	acts := []func(*model.Row) error{w.retryTwin, w.retryTwin, w.discardTwin, w.reopenTwin, w.releaseTwin, w.byHand}
	names := []string{"retries", "retries", "discards", "reopens", "releases", "makes due by hand"}
	n := w.choices.Below(len(acts) - 1)
	if hand {
		n = len(acts) - 1
	}
	if err := acts[n](r); err != nil {
		w.coverage.Add("fault", "an act on one of several rows is refused")
		w.logLine("a person %s %s, conflict: %v: %v", names[n], r.Key.ID, r.Key.Conflict, err)
		return
	}
	w.recordFault("a person "+names[n]+" one of several rows", "%s, conflict: %v", r.Key.ID, r.Key.Conflict)
	r.Revision++
	w.checkOwners(r.Key.ID)
	w.notify()
	w.wrapUp()
}

// retryTwin retries a row that is parked, or that waits for a time.
func (w *world) retryTwin(r *model.Row) error {
	if err := admin.MayAct(admin.RowRetried, r.Stored(), r.Due <= w.storeTime()); err != nil {
		return err
	}
	return w.runTwin(r, machine.AsWaiting)
}

// runTwin makes a row due now, if it may run although its identity has other rows.
func (w *world) runTwin(r *model.Row, as machine.As) error {
	s := w.store
	if !r.Waits() || !s.Owns(r) {
		if err := s.MayRun(r); err != nil {
			return err
		}
		s.TakeMarker(r)
		w.repair(r.Message)
	}
	if r.As == machine.AsDeadLettered {
		r.Place = 0 // the later messages of its queue were processed without it
	}
	r.As, r.Reason, r.Token, r.By = as, "", 0, nil
	r.Dates(w.storeTime(), 0)
	return nil
}

// releaseTwin ends the claim of a row.
func (w *world) releaseTwin(r *model.Row) error {
	if err := admin.MayAct(admin.RowReleased, r.Stored(), false); err != nil {
		return err
	}
	return w.runTwin(r, machine.AsReceived)
}

// discardTwin closes a row without an effect. A row that was applied in part, or may have been applied in part, is not
// discarded, because its effect could then happen twice.
func (w *world) discardTwin(r *model.Row) error {
	if err := admin.MayAct(admin.RowDiscarded, r.Stored(), false); err != nil {
		return err
	}
	if w.inPart(r) {
		return semel.ErrState
	}
	s, first := w.store, w.store.Rows[model.RowKey{ID: r.Key.ID}]
	had := s.Owns(r) && s.Markers[r.Key.ID].Outcome != store.Applied
	s.CloseMarker(r)
	r.As, r.Token, r.Changed = machine.AsDiscarded, 0, w.now
	if r.Key.Conflict && had && first != nil && !s.Owns(first) {
		w.broke("law 16", "a conflict of %s is discarded, and its first row, which is %s, has no marker", r.Key.ID, first.State())
	}
	s.Advance(r, nil, w.storeTime())
	return nil
}

// inPart reports whether a row was applied in part, or may have been applied in part.
func (w *world) inPart(r *model.Row) bool {
	return len(r.Steps) > 0 || r.Calls.Started > r.Calls.Finished || w.Plan.Calls && w.provider.charges[r.Key.ID] > 0
}

// reopenTwin reopens a discarded row.
func (w *world) reopenTwin(r *model.Row) error {
	if err := admin.MayAct(admin.RowReopened, r.Stored(), false); err != nil {
		return err
	}
	s := w.store
	if err := s.MayRun(r); err != nil {
		return err
	}
	if s.Owns(r) {
		s.Remember(r.Key.ID, store.Parked, s.Markers[r.Key.ID])
	}
	r.As, r.Reason, r.Place = machine.AsParked, admin.ReopenedReason(r.Reason), 0
	return nil
}

// byHand schedules a row although its marker has the outcome Applied. A person can make such a change in the database,
// and an earlier release allowed it.
func (w *world) byHand(r *model.Row) error {
	if r.Waits() || w.store.Markers[r.Key.ID].Outcome != store.Applied {
		return semel.ErrState
	}
	r.As, r.Reason, r.By, r.ByHand = machine.AsReceived, "", nil, true
	r.Dates(w.storeTime(), 0)
	return nil
}

// endOver ends a row that could be claimed but whose marker is not waiting for it. The result says whether the row was
// ended.
func (w *world) endOver(r *model.Row) bool {
	s := w.store
	m, marked := s.Markers[r.Key.ID]
	own := s.Owns(r)
	if !w.Plan.Twins || own && m.Outcome == store.Waiting {
		return false
	}
	state, _ := sqlform.Over(marked, m.Form(), own, s.Others(r))
	if state == "" {
		s.TakeMarker(r)
		return false
	}
	w.recordFault("a row that is over is ended by its claim", "%s, %s", r.Key.ID, state)
	r.As = map[store.RowState]machine.As{store.StateCompleted: machine.AsApplied, store.StateParked: machine.AsParked, store.StateDiscarded: machine.AsDiscarded}[state]
	r.Token, r.Started, r.Changed, r.ByHand = 0, 0, w.now, false
	r.Revision++
	w.checkOwners(r.Key.ID)
	s.Advance(r, nil, w.storeTime())
	w.wrapUp()
	return true
}

// checkOwners checks that the marker of an identity belongs to at most one row, and has the outcome of that
// row (law 16).
func (w *world) checkOwners(id string) {
	s := w.store
	m := s.Markers[id]
	var open, first *model.Row
	for _, r := range s.Inbox {
		switch {
		case r.Key.ID != id || r.ByHand:
			continue
		case !r.Key.Conflict:
			first = r
		}
		if !r.Waits() {
			continue
		}
		if open != nil {
			w.broke("law 16", "two rows of %s wait, %s and %s", id, open.State(), r.State())
		}
		open = r
	}
	w.arose("law 16")
	switch {
	case open != nil && m.Outcome != store.Waiting:
		w.broke("law 16", "a row of %s waits (conflict: %v), and its marker says %s", id, open.Key.Conflict, m.Outcome.String())
	case open != nil && m.Print != open.Print:
		w.broke("law 16", "a row of %s waits (conflict: %v), and its marker has another content", id, open.Key.Conflict)
	case open == nil && m.Outcome == store.Waiting && !w.waitsByHand(id):
		w.broke("law 16", "the marker of %s waits, and no row of it does", id)
	case open == nil && first != nil && m.Print == first.Print && m.Outcome == store.Discarded && first.As != machine.AsDiscarded && !w.someDiscarded(id, first):
		w.broke("law 16", "the marker of %s says that its first row is discarded, and that is %s", id, first.State())
	}
}

func (w *world) waitsByHand(id string) bool {
	return slices.ContainsFunc(w.store.Inbox, func(r *model.Row) bool { return r.Key.ID == id && r.ByHand })
}

// someDiscarded reports whether another row with the same content as the row first is discarded.
func (w *world) someDiscarded(id string, first *model.Row) bool {
	return slices.ContainsFunc(w.store.Inbox, func(r *model.Row) bool {
		return r != first && r.Key.ID == id && r.Print == first.Print && r.As == machine.AsDiscarded
	})
}

// checkTwins calls checkOwners for the rows that a batch has committed or unblocked.
func (f *flight) checkTwins() {
	w := f.p.w
	switch {
	case !w.Plan.Twins:
	case f.unblocked:
		w.checkAllOwners()
	default:
		for i := range f.of.Entries {
			w.checkOwners(f.message(i).ID)
		}
	}
}

// checkAllOwners calls checkOwners for all identities that have rows.
func (w *world) checkAllOwners() {
	if !w.Plan.Twins {
		return
	}
	for _, r := range w.store.Inbox {
		if !r.Key.Conflict || w.store.Rows[model.RowKey{ID: r.Key.ID}] == nil {
			w.checkOwners(r.Key.ID)
		}
	}
}
