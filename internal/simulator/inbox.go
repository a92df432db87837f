package simulator

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// person lets somebody act on a row: retry what is parked, end a claim, discard
// what waits.
func (w *world) person() {
	s := w.store
	if !w.plan.Config.Inbox || len(s.Inbox) == 0 || s.Down {
		return
	}
	r := s.Inbox[w.choices.Below(len(s.Inbox))]
	if i := slices.IndexFunc(s.Inbox, func(r *model.Row) bool { return r.Reason == semel.ReasonOutcomeUnknown }); i >= 0 && w.choices.Flip() {
		r = s.Inbox[i]
	}
	m, marked := s.Markers[r.Key.ID]
	r.Revision++
	switch {
	case r.Key.Conflict || r.ByHand || w.plan.Twins && !r.Waits() && s.MayRun(r) != nil:
	case r.As == machine.AsParked && marked && m.Outcome == store.Parked && r.Reason == semel.ReasonOutcomeUnknown:
		w.resolve(r)
	case r.Overdue() && w.choices.Flip():
		w.skip(r)
	case r.KeepsBack() && w.choices.Chance(3):
		w.pass(r)
	case (r.As == machine.AsParked || r.Overdue()) && marked && m.Outcome == store.Parked && r.Reason != semel.ReasonExpired:
		verb := "retries"
		if r.Reason == semel.ReasonSuppressed {
			verb, r.OfReplay = "sends what was suppressed", false
		}
		w.fault("a person "+verb, "%s", r.Key.ID)
		r.As, r.Reason, r.By = machine.AsWaiting, "", nil
		r.Dates(w.at(), 0)
		s.Remember(r.Key.ID, store.Waiting, model.Marker{Print: r.Print, At: w.now})
	case r.Waits() && r.Token != 0 && w.choices.Flip():
		w.fault("a person ends a claim", "%s", r.Key.ID)
		r.As, r.Token, r.By = machine.AsReceived, 0, nil
		r.Dates(w.at(), 0)
	case w.main != nil && r.As == machine.AsParked && r.Reason == semel.ReasonSuppressed && marked && m.Outcome == store.Parked && w.choices.Chance(3): // it stays so
	case w.main != nil && r.Waits() && r.Token == 0 && w.choices.Flip():
		w.suppress(r)
	case r.Waits() && !(w.plan.Twins && w.inPart(r)) && w.choices.Chance(4):
		w.fault("a person discards", "%s", r.Key.ID)
		s.CloseMarker(r)
		r.As, r.Token = machine.AsDiscarded, 0
		r.Changed = w.now
		s.Advance(r, nil, w.at())
		w.wrapUp()
	}
}
