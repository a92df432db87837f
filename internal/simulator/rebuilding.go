package simulator

import (
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
)

// generations is the state of a rebuild: a new generation gets a second set of identities and effects of the
// consumer, and then the live processes switch to that generation.
type generations struct {
	// The field rebuild is the world of the processes that fill the new generation. In that world, the field live is
	// the world of the live processes. Without a rebuild, the two fields are nil.
	rebuild, live *world
	// activeGeneration is the generation in which live processes must work. The field stores has the stores of the old
	// and the new generation.
	activeGeneration int
	stores           []*model.Store
	// closing is true while a switch is in progress. During a switch, no transaction may begin in the active
	// generation, until the end of the switch or until the time in the field until.
	closing bool
	until   time.Duration
	// upTo has, by lane, the position up to which the rebuild must have acked all messages, or is nil if the positions
	// are not known yet.
	upTo []int
}

// rebuilds starts a rebuild after some time.
func (w *world) rebuilds() {
	if w.Plan.Rebuilds {
		w.schedule(w.choices.Wait(w.Plan.Span), w.beginRebuild)
	}
}

// beginRebuild opens a new generation. Separate processes read the whole history into the generation, and then
// new messages, until the switch.
func (w *world) beginRebuild() {
	if !w.Plan.Rebuilds || w.rebuild != nil || w.finished {
		return
	}
	r := newWorld(nil, w.make)
	r.shared, r.live, w.rebuild = w.shared, w, r
	r.Plan = w.Plan
	r.Plan.Processes, r.Plan.Rebuilds, r.Plan.Operators = w.Plan.Readers, false, 0
	r.Plan.Ends, r.Plan.Has[plan.TroubleElsewhere] = false, false
	r.Plan.Config.IdleExit, r.Plan.Late = 0, false
	r.open()
	r.Messages = w.Messages
	r.store.Down = w.store.Down
	for i, l := range r.Source.Lanes {
		of := w.Source.Lanes[i]
		l.ID = of.ID + "^"
		for _, d := range slices.Concat(of.Before, of.Log) {
			at := max(w.now, d.Produced)
			l.Log = append(l.Log, &model.Delivery{Message: d.Message, Of: d, Lane: l, Position: len(l.Log), Produced: at})
			w.agenda.Add(at, r.poke)
		}
		for i := range of.Before { // effects from the time before the run
			l.Log[i].Produced = w.now
		}
	}
	w.stores = []*model.Store{w.store, r.store}
	w.acts = append(w.acts, act{verb: "rebuild", who: "operator", why: "the projection has another form", on: "generation 1"})
	w.recordFault("a rebuild begins", "of %d lanes", len(r.Source.Lanes))
	for seat := range r.seats {
		r.begin(seat)
	}
	w.schedule(w.choices.Wait(w.Plan.Span/4), r.disturb)
	w.schedule(w.choices.Wait(w.Plan.Span), w.trySwitch)
}

// rebuildGoesOn reports whether a rebuild is planned whose switch has not happened yet.
func (w *world) rebuildGoesOn() bool {
	switch {
	case w.live != nil:
		return !w.over
	case !w.Plan.Rebuilds:
		return false
	}
	return w.rebuild == nil || !w.rebuild.over || len(w.rebuild.living()) > 0
}

// trySwitch closes the active generation. The switch continues when no transaction is open in that generation.
func (w *world) trySwitch() {
	switch {
	case w.activeGeneration > 0 || w.finished || w.law != nil:
	case w.store.Down || w.quiet && !w.calm || w.closing:
		w.schedule(200*time.Millisecond, w.trySwitch)
	default:
		w.recordFault("a switch begins", "")
		w.closing, w.until, w.upTo = true, w.now+w.choices.Wait(4*time.Second), nil
		if w.calm {
			w.until = w.calmEnds
		}
		w.goOnSwitch()
	}
}

// goOnSwitch checks whether the rebuild has caught up with the live processes. If the rebuild has caught up, goOnSwitch
// makes the switch.
func (w *world) goOnSwitch() {
	switch {
	case w.law != nil || w.finished:
	case !w.calm && w.choices.Chance(60):
		w.recordFault("who switches is killed", "")
		w.schedule(max(w.until-w.now, time.Millisecond), w.reopen)
	case w.now > w.until || w.quiet && !w.calm:
		w.coverage.Add("fault", "a switch gives up")
		w.reopen()
	case !w.store.Down && w.mayActivate():
		w.activate()
		if !w.calm && w.choices.Chance(4) { // the switch is repeated although it has happened already
			w.coverage.Add("fault", "answer to a switch lost")
			w.schedule(w.choices.Wait(time.Second), w.trySwitch)
		}
	default:
		w.schedule(w.choices.Wait(w.Plan.Lag)+w.Plan.Lag/4, w.goOnSwitch)
	}
}

// reopen gives up a switch that has not happened; another attempt follows later.
func (w *world) reopen() {
	w.closing = false
	w.logLine("the switch is given up")
	w.schedule(w.choices.Wait(w.Plan.Span/4)+time.Second, w.trySwitch)
}

// mayActivate reports whether the switch may happen: no transaction is open in the active generation, and all messages
// that were in the log when mayActivate first found no open transaction are acked in the new generation.
func (w *world) mayActivate() bool {
	if len(w.store.Open) > 0 {
		return false
	}
	if w.upTo == nil {
		for _, l := range w.Source.Lanes {
			end := len(l.Before)
			for _, d := range l.Log {
				if d.Produced <= w.now {
					end++
				}
			}
			w.upTo = append(w.upTo, end)
		}
	}
	for i, l := range w.rebuild.Source.Lanes {
		if l.SettledUpTo() < w.upTo[i] {
			return false
		}
	}
	return true
}

// activate makes the switch: from now on the live processes work in the new generation.
func (w *world) activate() {
	r := w.rebuild
	w.recordFault("the new generation is switched to", "")
	w.acts = append(w.acts, act{verb: "switch", who: "operator", why: "it has caught up", on: "generation 1"})
	w.activeGeneration, w.closing, w.store = 1, false, r.store
	w.checkSwitch()
	r.over = true
	for _, p := range slices.Clone(r.living()) {
		p.runWhenThawed(p.sendStop)
	}
	w.schedule(time.Microsecond, w.wrapUp)
}

// closedOut reports whether a batch must not begin a transaction, because a switch is in progress or has happened since
// the batch was created. If a switch has happened, the process of the batch learns of it.
func (f *flight) closedOut() bool {
	w, p := f.p.w, f.p
	switch {
	case w.closing:
		w.coverage.Add("fault", "a transaction is refused while a switch is under way")
		return true
	case f.generation != w.activeGeneration:
		w.coverage.Add("fault", "a transaction is refused of the generation that was active")
		p.generation = w.activeGeneration
		return true
	}
	return false
}

// runInGeneration calls the function do in the generation of a batch.
func (f *flight) runInGeneration(do func()) {
	w := f.p.w
	if w.stores == nil {
		do()
		return
	}
	is := w.store
	w.store = w.stores[f.generation]
	do()
	if w.store = is; w.activeGeneration > 0 {
		w.store = w.stores[w.activeGeneration]
	}
}

// storeOf returns the store of the generation in which the end of a delivery was committed.
func (c *checker) storeOf(h *itemState) *model.Store {
	last := c.p.last
	switch {
	case h.endStore != nil:
	case last != nil && last.store != nil: // the delivery ended together with its copy
		h.endStore = last.store
	default:
		h.endStore = c.w.store
	}
	return h.endStore
}

// inItsStore calls the function do in the generation in which the end of a delivery was committed.
func (c *checker) inItsStore(h *itemState, do func()) {
	if c.w.stores == nil {
		do()
		return
	}
	is := c.w.store
	c.w.store = c.storeOf(h)
	do()
	c.w.store = is
}

// knownToActive checks that after a switch the new generation has the marker of an acked message (G2).
func (c *checker) knownToActive(h *itemState) {
	w, m := c.w, h.delivery.Message
	if w.activeGeneration == 0 {
		return
	}
	w.arose("G2")
	if _, marked := w.stores[w.activeGeneration].Marked(m); !marked {
		w.broke("G2", "%s is settled, and the generation that is active knows nothing of it", m.Name())
	}
}

// inActive checks that no batch commits in a generation that is no longer active (G2).
func (c *checker) inActive(f *flight) {
	if w := c.w; w.activeGeneration > 0 && f.generation != w.activeGeneration {
		w.broke("G2", "f%d of a process that has slept commits in the generation that was active", f.of.Number)
	}
}

// checkSwitch checks that the new generation has the markers of all acked messages (G2).
func (w *world) checkSwitch() {
	w.arose("G2")
	for _, l := range w.Source.Lanes {
		for _, d := range l.Log {
			if _, marked := w.store.Marked(d.Message); d.Settled && !marked && !w.skippedOnly(d.Message) {
				w.broke("G2", "%s at %s/%d is settled, and the new generation knows nothing of it", d.Message.Name(), l.ID, d.Position)
			}
		}
	}
}

// skippedOnly reports whether a message is for another consumer and is only acked.
func (w *world) skippedOnly(m *model.Message) bool {
	return m.Foreign && w.Plan.Config.OnFiltered == machine.EndSkip
}

// checkProjection compares the effects of both generations at the end. A message that can only succeed must have been
// applied in the old and in the new generation (G2).
func (w *world) checkProjection() {
	if w.activeGeneration == 0 {
		return
	}
	old := w.stores[0]
	for _, m := range w.Messages {
		if n := w.store.Effects[m.ID]; m.Harmless && m.Refused == "" && m.Charged == 0 && !w.HasOtherContent(m) && n != 1 {
			w.broke("G2", "%s has %d effects in the new generation, and %d in the old one", m.ID, n, old.Effects[m.ID])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.store.Effects)) {
		if n := w.store.Effects[id]; n > 1 {
			w.broke("law 12", "%s has %d effects in the new generation", id, n)
		}
	}
}
