package simulator

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// actsOnTwins has persons act on rows of identities that have several, one after the other.
func (w *world) actsOnTwins() {
	if !w.plan.twins {
		return
	}
	w.after(w.choices.wait(w.plan.span/16), func() {
		if w.calm || w.quiet || w.law != nil || w.finished {
			return
		}
		if !w.store.down {
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
	for _, r := range s.inbox {
		rows[r.key.id]++
	}
	hand := w.choices.chance(12)
	applied := hand || w.choices.chance(6)
	may := slices.DeleteFunc(slices.Clone(s.inbox), func(r *row) bool {
		return rows[r.key.id] < 2 && !r.key.conflict || applied != (s.markers[r.key.id].outcome == store.Applied) || s.locks[r.key.id] != nil || r.message.conduct == saysDuplicate || r.reason == semel.ReasonSuppressed ||
			s.markers[r.key.id].outcome == newer || r.message.version > 0 && s.stream(r.message.stream).held()
	})
	if len(may) == 0 {
		return
	}
	r := may[w.choices.below(len(may))]
	acts := []func(*row) error{w.retryTwin, w.retryTwin, w.discardTwin, w.reopenTwin, w.releaseTwin, w.byHand}
	names := []string{"retries", "retries", "discards", "reopens", "releases", "makes due by hand"}
	n := w.choices.below(len(acts) - 1)
	if hand {
		n = len(acts) - 1
	}
	if err := acts[n](r); err != nil {
		w.coverage.add("fault", "an act on one of several rows is refused")
		w.note("a person %s %s, conflict: %v: %v", names[n], r.key.id, r.key.conflict, err)
		return
	}
	w.fault("a person "+names[n]+" one of several rows", "%s, conflict: %v", r.key.id, r.key.conflict)
	r.revision++
	w.checkOwners(r.key.id)
	w.notify()
	w.wrapUp()
}

// retryTwin lets a row run again that was set aside, or that waits for its time.
func (w *world) retryTwin(r *row) error {
	if err := admin.MayAct(store.RowRetried, r.stored(), r.due <= w.at()); err != nil {
		return err
	}
	return w.runTwin(r, machine.AsWaiting)
}

// stored is the row as the rules about acts ask for it.
func (r *row) stored() *store.StoredRow {
	return &store.StoredRow{State: r.state(), Reason: r.reason, CallsStarted: r.calls.Started, CallsFinished: r.calls.Finished}
}

// runTwin has a row be due now, if it may run beside the others of its identity.
func (w *world) runTwin(r *row, as machine.As) error {
	s := w.store
	if !r.waits() || !s.owns(r) {
		if err := s.mayRun(r); err != nil {
			return err
		}
		s.takeMarker(r)
		w.repair(r.message)
	}
	if r.as == machine.AsDeadLettered {
		r.place = 0 // those of its line have gone on
	}
	r.as, r.reason, r.token, r.by = as, "", 0, nil
	r.dates(w.at(), 0)
	return nil
}

// releaseTwin ends the claim of a row.
func (w *world) releaseTwin(r *row) error {
	if err := admin.MayAct(store.RowReleased, r.stored(), false); err != nil {
		return err
	}
	return w.runTwin(r, machine.AsReceived)
}

// discardTwin closes a row without an effect. Nobody discards what has taken effect in part,
// or may have: that would be a decision to have it twice.
func (w *world) discardTwin(r *row) error {
	if err := admin.MayAct(store.RowDiscarded, r.stored(), false); err != nil {
		return err
	}
	if w.inPart(r) {
		return semel.ErrState
	}
	s, first := w.store, w.store.rows[rowKey{id: r.key.id}]
	had := s.owns(r) && s.markers[r.key.id].outcome != store.Applied
	s.closeMarker(r)
	r.as, r.token, r.changed = machine.AsDiscarded, 0, w.now
	if r.key.conflict && had && first != nil && !s.owns(first) {
		w.broke("law 16", "a conflict of %s is discarded, and its first row, which is %s, has no marker", r.key.id, first.state())
	}
	s.advance(r, nil, w.at())
	return nil
}

// inPart reports whether a row has taken effect in part, or may have.
func (w *world) inPart(r *row) bool {
	return len(r.steps) > 0 || r.calls.Started > r.calls.Finished || w.plan.calls && w.provider.charged[r.key.id] > 0
}

// reopenTwin takes back that a row was discarded.
func (w *world) reopenTwin(r *row) error {
	if err := admin.MayAct(store.RowReopened, r.stored(), false); err != nil {
		return err
	}
	s := w.store
	if err := s.mayRun(r); err != nil {
		return err
	}
	if s.owns(r) {
		s.remember(r.key.id, store.Parked, s.markers[r.key.id])
	}
	r.as, r.reason, r.place = machine.AsParked, admin.ReopenedReason(r.reason), 0
	return nil
}

// byHand is somebody who makes a row due past Semel although its marker says applied, as what
// an earlier release freed is.
func (w *world) byHand(r *row) error {
	if r.waits() || w.store.markers[r.key.id].outcome != store.Applied {
		return semel.ErrState
	}
	r.as, r.reason, r.by, r.byHand = machine.AsReceived, "", nil, true
	r.dates(w.at(), 0)
	return nil
}
