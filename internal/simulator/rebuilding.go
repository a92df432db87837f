package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
)

// generations is what a world has of a rebuild: its consumer's identities and effects once
// more, in a generation of their own, which the live processes are switched to.
type generations struct {
	// rebuild is the world of whoever reads the history into the new generation, live, of
	// that world, the other; nil: there is none.
	rebuild, live *world
	// active is the generation that live processes have to work in; stores are those of
	// both.
	active int
	stores []*model.Store
	// closing: a switch is under way, and nobody opens a transaction in the active
	// generation until it is over, or until that moment.
	closing bool
	until   time.Duration
	// upTo is how far the rebuild has to be settled, by lane; nil: not known yet.
	upTo []int
}

// rebuilds has a rebuild begin after a while.
func (w *world) rebuilds() {
	if w.plan.Rebuilds {
		w.after(w.choices.Wait(w.plan.Span), w.beginRebuild)
	}
}

// beginRebuild opens a generation, into which processes of their own read the whole
// history, and then what comes, until it is switched to.
func (w *world) beginRebuild() {
	if !w.plan.Rebuilds || w.rebuild != nil || w.finished {
		return
	}
	r := newWorld(nil, w.make)
	r.shared, r.live, w.rebuild = w.shared, w, r
	r.plan = w.plan
	r.plan.Processes, r.plan.Rebuilds, r.plan.Operators = w.plan.Readers, false, 0
	r.plan.Ends, r.plan.Has[plan.TroubleElsewhere] = false, false
	r.plan.Config.IdleExit, r.plan.Late = 0, false
	r.open()
	r.messages = w.messages
	r.store.Down = w.store.Down
	for i, l := range r.source.Lanes {
		of := w.source.Lanes[i]
		l.ID = of.ID + "^"
		for _, d := range slices.Concat(of.Before, of.Log) {
			at := max(w.now, d.Produced)
			l.Log = append(l.Log, &model.Delivery{Message: d.Message, Of: d, Lane: l, Position: len(l.Log), Produced: at})
			w.agenda.Add(at, r.poke)
		}
		for i := range of.Before { // which was there before
			l.Log[i].Produced = w.now
		}
	}
	w.stores = []*model.Store{w.store, r.store}
	w.acts = append(w.acts, act{verb: "rebuild", who: "operator", why: "the projection has another form", on: "generation 1"})
	w.fault("a rebuild begins", "of %d lanes", len(r.source.Lanes))
	for seat := range r.seats {
		r.begin(seat)
	}
	w.after(w.choices.Wait(w.plan.Span/4), r.disturb)
	w.after(w.choices.Wait(w.plan.Span), w.trySwitch)
}

// rebuildGoesOn reports whether a rebuild is planned that is not switched to.
func (w *world) rebuildGoesOn() bool {
	switch {
	case w.live != nil:
		return !w.over
	case !w.plan.Rebuilds:
		return false
	}
	return w.rebuild == nil || !w.rebuild.over || len(w.rebuild.living()) > 0
}

// trySwitch closes the active generation, and goes on when nothing is open in it.
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

// goOnSwitch looks whether the rebuild is where the live processes are, and switches then.
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
		if !w.calm && w.choices.Chance(4) { // whoever asks again finds that it is done
			w.coverage.Add("fault", "answer to a switch lost")
			w.after(w.choices.Wait(time.Second), w.trySwitch)
		}
	default:
		w.after(w.choices.Wait(w.plan.Lag)+w.plan.Lag/4, w.goOnSwitch)
	}
}

// reopen leaves all as it was before a switch, which somebody tries again.
func (w *world) reopen() {
	w.closing = false
	w.note("the switch is given up")
	w.after(w.choices.Wait(w.plan.Span/4)+time.Second, w.trySwitch)
}

// mayActivate reports whether nothing is open in the active generation, and all that stood
// in the log then is settled in the new one.
func (w *world) mayActivate() bool {
	if len(w.store.Open) > 0 {
		return false
	}
	if w.upTo == nil {
		for _, l := range w.source.Lanes {
			end := len(l.Before)
			for _, d := range l.Log {
				if d.Produced <= w.now {
					end++
				}
			}
			w.upTo = append(w.upTo, end)
		}
	}
	for i, l := range w.rebuild.source.Lanes {
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

// closedOut reports whether a flight may open no transaction now: a switch is under way, or
// there was one since it was made, and its process learns of it.
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

// within does something in the generation of a flight.
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
