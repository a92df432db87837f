package simulator

import (
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
)

// generations is the state of a rebuild in a world: a second set of identities and effects of the consumer, in a
// generation of its own, to which the live processes switch.
type generations struct {
	// rebuild is the world of the processes that fill the new generation, live the other world, seen from there;
	// nil if there is none.
	rebuild, live *world
	// active is the generation in which live processes must work; stores are the stores of both generations.
	active int
	stores []*model.Store
	// closing: a switch is in progress, and no transaction opens in the active generation until it ends, or until
	// that time.
	closing bool
	until   time.Duration
	// upTo is the position up to which the rebuild must be settled, by lane; nil if not known yet.
	upTo []int
}

// rebuilds starts a rebuild after a while.
func (w *world) rebuilds() {
	if w.Plan.Rebuilds {
		w.after(w.choices.Wait(w.Plan.Span), w.beginRebuild)
	}
}

// beginRebuild opens a generation. Separate processes read the whole history into it, and then new messages, until
// the switch.
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
		for i := range of.Before { // effects from before the run
			l.Log[i].Produced = w.now
		}
	}
	w.stores = []*model.Store{w.store, r.store}
	w.acts = append(w.acts, act{verb: "rebuild", who: "operator", why: "the projection has another form", on: "generation 1"})
	w.fault("a rebuild begins", "of %d lanes", len(r.Source.Lanes))
	for seat := range r.seats {
		r.begin(seat)
	}
	w.after(w.choices.Wait(w.Plan.Span/4), r.disturb)
	w.after(w.choices.Wait(w.Plan.Span), w.trySwitch)
}

// rebuildGoesOn reports whether a rebuild is planned and the switch has not happened.
func (w *world) rebuildGoesOn() bool {
	switch {
	case w.live != nil:
		return !w.over
	case !w.Plan.Rebuilds:
		return false
	}
	return w.rebuild == nil || !w.rebuild.over || len(w.rebuild.living()) > 0
}

// trySwitch closes the active generation, and continues when no transaction is open in it.
func (w *world) trySwitch() {
	switch {
	case w.active > 0 || w.finished || w.law != nil:
	case w.store.Down || w.quiet && !w.calm || w.closing:
		w.after(200*time.Millisecond, w.trySwitch)
	default:
		w.fault("a switch begins", "")
		w.closing, w.until, w.upTo = true, w.now+w.choices.Wait(4*time.Second), nil
		if w.calm {
			w.until = w.calmEnds
		}
		w.goOnSwitch()
	}
}

// goOnSwitch checks whether the rebuild has caught up with the live processes, and then switches.
func (w *world) goOnSwitch() {
	switch {
	case w.law != nil || w.finished:
	case !w.calm && w.choices.Chance(60):
		w.fault("who switches is killed", "")
		w.after(max(w.until-w.now, time.Millisecond), w.reopen)
	case w.now > w.until || w.quiet && !w.calm:
		w.coverage.Add("fault", "a switch gives up")
		w.reopen()
	case !w.store.Down && w.mayActivate():
		w.activate()
		if !w.calm && w.choices.Chance(4) { // a repeated switch finds that it has happened
			w.coverage.Add("fault", "answer to a switch lost")
			w.after(w.choices.Wait(time.Second), w.trySwitch)
		}
	default:
		w.after(w.choices.Wait(w.Plan.Lag)+w.Plan.Lag/4, w.goOnSwitch)
	}
}

// reopen undoes a switch that has not happened; it is tried again later.
func (w *world) reopen() {
	w.closing = false
	w.note("the switch is given up")
	w.after(w.choices.Wait(w.Plan.Span/4)+time.Second, w.trySwitch)
}

// mayActivate reports whether no transaction is open in the active generation, and everything that was in the log
// then is settled in the new one.
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

// activate switches: from now on the live processes work in the new generation.
func (w *world) activate() {
	r := w.rebuild
	w.fault("the new generation is switched to", "")
	w.acts = append(w.acts, act{verb: "switch", who: "operator", why: "it has caught up", on: "generation 1"})
	w.active, w.closing, w.store = 1, false, r.store
	w.checkSwitch()
	r.over = true
	for _, p := range slices.Clone(r.living()) {
		p.hear(p.stop)
	}
	w.after(time.Microsecond, w.wrapUp)
}

// closedOut reports whether a flight must not open a transaction: a switch is in progress, or one has happened
// since the flight was created. Its process learns of that.
func (f *flight) closedOut() bool {
	w, p := f.p.w, f.p
	switch {
	case w.closing:
		w.coverage.Add("fault", "a transaction is refused while a switch is under way")
		return true
	case f.generation != w.active:
		w.coverage.Add("fault", "a transaction is refused of the generation that was active")
		p.generation = w.active
		return true
	}
	return false
}

// within calls do in the generation of a flight.
func (f *flight) within(do func()) {
	w := f.p.w
	if w.stores == nil {
		do()
		return
	}
	is := w.store
	w.store = w.stores[f.generation]
	do()
	if w.store = is; w.active > 0 {
		w.store = w.stores[w.active]
	}
}

// storeOf returns the generation in which a delivery's end was committed.
func (c *checker) storeOf(h *handed) *model.Store {
	last := c.p.last
	switch {
	case h.in != nil:
	case last != nil && last.store != nil: // it rode on another
		h.in = last.store
	default:
		h.in = c.w.store
	}
	return h.in
}

// inItsStore calls do in the generation in which a delivery's end was committed.
func (c *checker) inItsStore(h *handed, do func()) {
	if c.w.stores == nil {
		do()
		return
	}
	is := c.w.store
	c.w.store = c.storeOf(h)
	do()
	c.w.store = is
}

// knownToActive checks that the active generation knows what is settled after a switch (G2).
func (c *checker) knownToActive(h *handed) {
	w, m := c.w, h.delivery.Message
	if w.active == 0 {
		return
	}
	w.arose("G2")
	if _, marked := w.stores[w.active].Marked(m); !marked {
		w.broke("G2", "%s is settled, and the generation that is active knows nothing of it", m.Name())
	}
}

// inActive checks that no flight commits in a generation that is no longer active (G2).
func (c *checker) inActive(f *flight) {
	if w := c.w; w.active > 0 && f.generation != w.active {
		w.broke("G2", "f%d of a process that has slept commits in the generation that was active", f.of.Number)
	}
}

// checkSwitch checks that the new generation knows all settled messages (G2).
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

// skippedOnly reports whether a message belongs to another consumer and is only settled.
func (w *world) skippedOnly(m *model.Message) bool {
	return m.Foreign && w.Plan.Config.OnFiltered == machine.EndSkip
}

// checkProjection compares the effects of the new generation with those of the old one at the end: a message that
// can only succeed was applied in both (G2).
func (w *world) checkProjection() {
	if w.active == 0 {
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
