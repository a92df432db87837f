package simulator

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// actsOnTwins has persons act on rows of identities that have several, one after the other.
func (w *world) actsOnTwins() {
	if !w.plan.Twins {
		return
	}
	w.after(w.choices.Wait(w.plan.Span/16), func() {
		if w.calm || w.quiet || w.law != nil || w.finished {
			return
		}
		if !w.store.Down {
			w.actOnTwin()
		}
		w.actsOnTwins()
	})
}

// actOnTwin lets a person do something to a row of an identity that has several, if there is
// one that no batch has.
func (w *world) actOnTwin() {
	s := w.store
	rows := map[string]int{}
	for _, r := range s.Inbox {
		rows[r.Key.ID]++
	}
	hand := w.choices.Chance(12)
	applied := hand || w.choices.Chance(6)
	may := slices.DeleteFunc(slices.Clone(s.Inbox), func(r *model.Row) bool {
		return rows[r.Key.ID] < 2 && !r.Key.Conflict || applied != (s.Markers[r.Key.ID].Outcome == store.Applied) || s.Locks[r.Key.ID] != nil || r.Message.Conduct == model.SaysDuplicate || r.Reason == semel.ReasonSuppressed ||
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
		w.note("a person %s %s, conflict: %v: %v", names[n], r.Key.ID, r.Key.Conflict, err)
		return
	}
	w.fault("a person "+names[n]+" one of several rows", "%s, conflict: %v", r.Key.ID, r.Key.Conflict)
	r.Revision++
	w.checkOwners(r.Key.ID)
	w.notify()
	w.wrapUp()
}

// retryTwin lets a row run again that was set aside, or that waits for its time.
func (w *world) retryTwin(r *model.Row) error {
	if err := admin.MayAct(store.RowRetried, r.Stored(), r.Due <= w.at()); err != nil {
		return err
	}
	return w.runTwin(r, machine.AsWaiting)
}

// runTwin has a row be due now, if it may run beside the others of its identity.
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
		r.Place = 0 // those of its line have gone on
	}
	r.As, r.Reason, r.Token, r.By = as, "", 0, nil
	r.Dates(w.at(), 0)
	return nil
}

// releaseTwin ends the claim of a row.
func (w *world) releaseTwin(r *model.Row) error {
	if err := admin.MayAct(store.RowReleased, r.Stored(), false); err != nil {
		return err
	}
	return w.runTwin(r, machine.AsReceived)
}

// discardTwin closes a row without an effect. Nobody discards what has taken effect in part,
// or may have: that would be a decision to have it twice.
func (w *world) discardTwin(r *model.Row) error {
	if err := admin.MayAct(store.RowDiscarded, r.Stored(), false); err != nil {
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
	s.Advance(r, nil, w.at())
	return nil
}

// inPart reports whether a row has taken effect in part, or may have.
func (w *world) inPart(r *model.Row) bool {
	return len(r.Steps) > 0 || r.Calls.Started > r.Calls.Finished || w.plan.Calls && w.provider.charged[r.Key.ID] > 0
}

// reopenTwin takes back that a row was discarded.
func (w *world) reopenTwin(r *model.Row) error {
	if err := admin.MayAct(store.RowReopened, r.Stored(), false); err != nil {
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

// byHand is somebody who makes a row due past Semel although its marker says applied, as what
// an earlier release freed is.
func (w *world) byHand(r *model.Row) error {
	if r.Waits() || w.store.Markers[r.Key.ID].Outcome != store.Applied {
		return semel.ErrState
	}
	r.As, r.Reason, r.By, r.ByHand = machine.AsReceived, "", nil, true
	r.Dates(w.at(), 0)
	return nil
}
