package simulator

import (
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// act is the audit record of a person's action on a row.
type act struct{ verb, who, why, on string }

func (a act) String() string { return strconv.Quote(a.who) + " " + a.verb + " " + a.on }

// operator is a person who retries parked rows one after the other.
type operator struct {
	w    *world
	name string
	rows []planned
	next int
	// lost is true if the response to the last action was lost.
	lost bool
	// rounds is the number of plans that the operator has completed.
	rounds int
}

// planned is a row with its revision at the time of the plan.
type planned struct {
	row      *model.Row
	revision int
}

// operating records which operator may act now. Operators of one consumer take turns, by the store's clock.
type operating struct {
	by    *operator
	until time.Duration
	// made is the number of rows that operators have scheduled.
	made int
}

// operatorLease is the time without an action after which another operator may take the turn.
const operatorLease = 500 * time.Millisecond

// operators starts the operators, sometimes two at the same time.
func (w *world) operators() {
	for range w.Plan.Operators {
		o := &operator{w: w, name: "operator " + string(rune('a'+w.choices.Below(3)))}
		w.schedule(w.choices.Wait(w.Plan.Span), o.begin)
	}
}

// works reports whether operators still act.
func (o *operator) works() bool { return !o.w.calm && !o.w.quiet && o.w.law == nil }

// begin makes a plan. The operator acts on the plan after some time.
func (o *operator) begin() {
	w := o.w
	switch {
	case !o.works():
		return
	case w.store.Down:
		w.schedule(operatorLease/4, o.begin)
		return
	}
	group := w.group()
	o.rows, o.next, o.lost = nil, 0, false
	for _, r := range w.store.Inbox {
		if r.SetAside() && (group == "" || r.Reason == group) {
			o.rows = append(o.rows, planned{r, r.Revision})
		}
	}
	if len(o.rows) > 0 {
		w.recordFault("an operator replays", "%s, %d rows of %q", o.name, len(o.rows), group)
	}
	w.schedule(w.choices.Wait(2*time.Second), o.takeTurn)
}

// takeTurn takes the turn, or waits until the turn is free.
func (o *operator) takeTurn() {
	w, t := o.w, &o.w.operating
	switch {
	case !o.works():
		return
	case w.store.Down || t.by != nil && t.by != o && t.until > w.now:
		w.coverage.Add("fault", "an operator waits for another, or for the store")
		w.schedule(operatorLease/4, o.takeTurn)
		return
	}
	t.by, t.until = o, w.now+operatorLease
	o.later()
}

// group draws a reason; only rows with that reason are retried. If the reason is empty, all rows are retried.
func (w *world) group() semel.Reason {
	aside := slices.DeleteFunc(slices.Clone(w.store.Inbox), func(r *model.Row) bool { return !r.SetAside() })
	if len(aside) == 0 || w.choices.Flip() {
		return ""
	}
	return aside[w.choices.Below(len(aside))].Reason
}

// later schedules the next row: soon, or sometimes so late that another operator may have taken over in the
// meantime.
func (o *operator) later() {
	wait := o.w.choices.Wait(o.w.Plan.Lag)
	if o.w.choices.Chance(8) {
		wait += o.w.choices.Wait(2 * operatorLease)
	}
	o.w.schedule(wait, o.goOn)
}

// goOn schedules the next row if the operator still has the turn.
func (o *operator) goOn() {
	w, t := o.w, &o.w.operating
	switch {
	case !o.works():
		return
	case w.store.Down:
		w.schedule(operatorLease/4, o.goOn)
		return
	case o.next == len(o.rows):
		if t.by == o {
			t.by = nil
		}
		if o.rounds++; o.rounds < 6 {
			w.schedule(w.choices.Wait(w.Plan.Span/2), o.begin)
		}
		return
	case w.choices.Chance(20):
		w.recordFault("an operator is killed", "%s", o.name)
		again := &operator{w: w, name: o.name}
		w.schedule(w.choices.Wait(2*operatorLease), again.begin)
		return
	case t.by != o:
		w.coverage.Add("fault", "an operator has lost its turn")
		o.takeTurn()
		return
	}
	t.until = w.now + operatorLease
	at := o.rows[o.next]
	if w.dueBefore(at.row) {
		o.later()
		return
	}
	w.checkTurn(o)
	if !o.lost && w.choices.Chance(4) {
		w.edits(o, at)
		if w.choices.Flip() { // the operator does not wait for the end of the edit
			o.takeNext()
			return
		}
	}
	if w.requeue(at.row, at.revision, act{"retry", o.name, "it can be done now", at.row.Key.ID}) && !o.lost && w.choices.Chance(4) {
		w.coverage.Add("fault", "answer to an operator lost")
		o.lost = true // the operator repeats the action
		wait := w.choices.Wait(3 * time.Second)
		t.until += wait
		w.schedule(wait, o.goOn)
		return
	}
	o.takeNext()
}

// takeNext continues with the next row.
func (o *operator) takeNext() {
	o.lost = false
	o.next++
	o.later()
}

// dueBefore reports whether a person has scheduled another row with the same key that has not ended.
func (w *world) dueBefore(r *model.Row) bool {
	return slices.ContainsFunc(w.store.Inbox, func(before *model.Row) bool {
		return before != r && before.Made > 0 && before.Waits() && before.Message.Route == r.Message.Route
	})
}

// requeue schedules a parked row if the row has not changed since the operator read it. The same transaction
// records the action. requeue reports whether the row was scheduled.
func (w *world) requeue(r *model.Row, revision int, a act) bool {
	s := w.store
	m, marked := s.Markers[r.Key.ID]
	switch {
	case s.Rows[r.Key] != r || r.Revision != revision || !r.SetAside():
		w.coverage.Add("fault", "an operator comes too late for a row")
		return false
	case !marked || m.Outcome != store.Parked && m.Outcome != store.DeadLettered:
		return false
	}
	w.recordFault("an operator makes a row due", "%s, %s", r.Key.ID, a)
	w.repair(r.Message)
	w.acts = append(w.acts, a)
	w.makeDue(r)
	return true
}

// repair usually removes the cause of a message's failure, as people do before they retry the message.
func (w *world) repair(m *model.Message) {
	if m.Conduct != model.SaysDuplicate && !w.Plan.Calls && w.choices.Often(3) {
		m.Times = 0
	}
}

// makeDue schedules a row: it can be claimed at once.
func (w *world) makeDue(r *model.Row) {
	if r.As == machine.AsDeadLettered {
		r.Place = 0 // the later messages of its line have continued without it
	}
	w.operating.made++
	r.As, r.Reason, r.By, r.Made = machine.AsWaiting, "", nil, w.operating.made
	r.Dates(w.storeTime(), 0)
	r.Revision++
	r.Acts++
	w.store.Remember(r.Key.ID, store.Waiting, model.Marker{Print: r.Print, At: w.now})
	w.notify()
}

// edits waits some time, changes the content of a row so that it can be processed, and schedules the row.
func (w *world) edits(o *operator, at planned) {
	if w.Plan.Calls || w.Plan.Steps > 0 {
		return
	}
	w.schedule(w.choices.Wait(4*time.Second), func() {
		if o.works() && !w.store.Down {
			w.edit(at.row, at.revision, act{"edit", o.name, "it said something wrong", at.row.Key.ID})
		}
	})
}

// edit changes the content of a row and schedules it, if the row has not changed since the operator read it.
// The identity stays the same. The marker keeps the fingerprint of the original, so that copies of the
// original still count as duplicates.
func (w *world) edit(r *model.Row, revision int, a act) {
	m, marked := w.store.Markers[r.Key.ID]
	switch {
	case w.store.Rows[r.Key] != r || r.Revision != revision || !r.SetAside() || w.dueBefore(r):
		w.coverage.Add("fault", "an operator's edit comes too late")
		return
	case !marked || m.Outcome != store.Parked && m.Outcome != store.DeadLettered:
		return
	}
	w.recordFault("an operator edits", "%s, %s", r.Key.ID, a)
	w.checkEdit(r)
	edited := *r.Message
	edited.Conduct, edited.Times, edited.Harmless, edited.Edited = model.Succeeds, 0, false, r.Message
	w.acts = append(w.acts, a)
	r.Message = &edited
	w.makeDue(r)
}

// checkTurn checks that no operator acts after another operator has taken the turn (law 5, trap T47).
func (w *world) checkTurn(o *operator) {
	w.arose("trap T47")
	if w.operating.by != o {
		w.broke("trap T47", "%s makes rows due, and it is %s's turn", o.name, w.operating.by.name)
	}
}

// checkEdit checks that an edited message was not applied before the edit (G5).
func (w *world) checkEdit(r *model.Row) {
	w.arose("G5")
	if w.store.Effects[r.Key.ID] > 0 {
		w.broke("G5", "%s is edited, and has taken effect", r.Key.ID)
	}
}

// inKeyOrder checks that a retried message is applied after the earlier retried messages with the same key
// (law 8).
func (w *world) inKeyOrder(m *model.Message, claim *model.Claim) {
	if claim == nil || claim.Row.WasMade == 0 {
		return
	}
	w.coverage.Add("fault", "what a person has made due takes effect")
	for _, r := range w.store.Inbox {
		if r.Made > 0 && r.Made < claim.Row.WasMade && r.Waits() && r.Message.Route == m.Route && r != claim.Row {
			w.broke("law 8", "%s takes effect again before %s, which was made due before it", m.Name(), r.Key.ID)
		}
	}
}

// sameAsOriginal checks that an edited message differs from the original only in its content (law 14).
func (w *world) sameAsOriginal(m *model.Message) {
	p := m.Edited
	if p == nil {
		return
	}
	w.coverage.Add("fault", "what was edited takes effect")
	if p.ID != m.ID || p.Source != m.Source || p.Identity != m.Identity || p.Route != m.Route || p.Stream != m.Stream || p.Version != m.Version || p.Former != m.Former {
		w.broke("law 14", "%s is edited, and takes effect as %s", p.Name(), m.ID)
	}
}

// checkActs compares the actions of persons on rows with the audit records (law 14).
func (w *world) checkActs() {
	recorded := map[string]int{}
	for _, a := range w.acts {
		if recorded[a.on]++; a.who == "" || a.why == "" {
			w.broke("law 14", "%s of %s has no who or no why", a.verb, a.on)
		}
	}
	for _, r := range w.store.Inbox {
		if r.Acts != recorded[r.Key.ID] && !r.Key.Conflict && !w.store.WasRemoved(r.Key.ID) {
			w.broke("law 14", "persons have let %s run again %d times, and %d are recorded", r.Key.ID, r.Acts, recorded[r.Key.ID])
		}
	}
}
