package simulator

import (
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// long is how long a store stays away that does not come back.
const long = 2 * time.Minute

// endure comes between the faults and the calm: the world stays with what has no
// end, a store that is away or a handler that does not return. What does not
// depend on it must go on, and then a stop must end the machine all the same.
func (w *world) endure() {
	w.quiet = true
	w.armed = crash{}
	w.beginReplay()
	w.beginRebuild()
	for _, each := range w.worlds() {
		for _, p := range each.seats {
			if p != nil {
				p.thaw()
			}
		}
		each.everybody()
	}
	switch {
	case w.Plan.Away:
		w.fault("store away without end", "")
		w.takeStore()
		if w.Plan.Config.OneAttempt { // all is handed back, and comes again at its broker's pace
			w.mostSteps *= 20
		}
		w.after(long, w.endEndurance)
	case w.stuckForGood() > 0:
		if w.Plan.Config.Inbox || w.sender != nil { // what the stuck worker should have is claimed and given back all the time
			w.mostSteps *= 20
		}
		w.after(w.patienceOfAll(), w.endEndurance)
	default:
		w.beCalm()
	}
}

// endEndurance looks what has become of the others, and stops everybody.
func (w *world) endEndurance() {
	drain := time.Duration(0)
	for _, each := range w.worlds() {
		drain = max(drain, each.Plan.Config.Drain)
		each.endAll(w.Plan.Away)
	}
	w.after(drain+2*time.Second, w.beCalm)
}

// endAll looks what has become of the others, where the store is away or not, and stops
// everybody.
func (w *world) endAll(away bool) {
	for _, p := range slices.Clone(w.living()) {
		if away {
			p.check.asksOn()
		}
		p.check.othersWentOn()
		if !p.check.stopping {
			p.feed(machine.Stop{})
		}
	}
}

// stuckForGood counts handlers that never return.
func (w *world) stuckForGood() (n int) {
	for _, each := range w.worlds() {
		for _, p := range each.living() {
			n += len(p.check.stuck)
		}
	}
	return n
}

// sticks is called when a handler will never return.
func (c *checker) sticks(f *machine.Flight) { c.stuck = append(c.stuck, f) }

// alive reports whether the machine must still do something for a delivery.
func (c *checker) alive(h *handed) bool { return !h.told && !h.stale }

// othersWentOn checks that what does not depend on a stuck handler came to its
// end (laws 7 and 8).
func (c *checker) othersWentOn() {
	workers := c.stuckWorkers()
	if len(workers) == 0 || len(workers) == c.p.config.Workers || c.stopping || c.w.Plan.Away {
		return
	}
	waits := c.waitForStuck()
	for _, h := range c.hands {
		if !c.alive(h) || waits[h] {
			continue
		}
		c.broke("law 8", "%s of another lane has not ended while f%d is stuck", h.delivery.Message.Name(), c.stuck[0].Number)
		return
	}
	c.w.coverage.Add("fault", "others go on beside a stuck handler")
}

// stuckWorkers are those whose handlers never return.
func (c *checker) stuckWorkers() map[int]bool {
	workers := map[int]bool{}
	for _, s := range c.stuck {
		workers[s.Worker] = true
	}
	return workers
}

// waitForStuck finds the deliveries that wait for a stuck handler: in its flight, or for
// one of those.
func (c *checker) waitForStuck() map[*handed]bool {
	o := newObstacles(c.stuckWorkers())
	for _, f := range c.stuck {
		for _, e := range f.Entries {
			o.add(c, e.Item)
		}
	}
	return c.waitFor(o)
}

// waitForSource finds the deliveries that are being settled, or of which a dead letter is
// being made, also as this Settle asks, and those that wait for them: their copies, and
// behind a dead letter its line.
func (c *checker) waitForSource(a *machine.Settle) map[*handed]bool {
	o := newObstacles(nil)
	add := func(it *machine.Item, copying bool) {
		switch {
		case copying:
			o.add(c, it)
		case !c.skips(handOf(it).delivery.Message): // what is skipped has no copies
			o.addCopies(it)
		}
	}
	for _, h := range c.hands {
		if c.alive(h) && (h.asked || h.left) {
			add(h.item, h.copying)
		}
	}
	for _, s := range a.Items {
		add(s.Item, s.Kind == semel.DeadLetter)
	}
	return c.waitFor(o)
}

// obstacles keep deliveries waiting: those in these lines, of these identities, and, of
// what has no order, with these workers.
type obstacles struct {
	lines   map[line]bool
	ids     map[string]bool
	workers map[int]bool
}

func newObstacles(workers map[int]bool) *obstacles {
	return &obstacles{map[line]bool{}, map[string]bool{}, workers}
}

func (o *obstacles) addCopies(it *machine.Item) {
	o.ids[identity(it)], o.ids[formerOf(it)] = true, true
}

func (o *obstacles) add(c *checker, it *machine.Item) {
	o.addCopies(it)
	if l, ordered := c.lineOf(it); ordered {
		o.lines[l] = true
	}
}

// keep reports whether a delivery has to wait.
func (o *obstacles) keep(c *checker, h *handed) bool {
	if o.ids[identity(h.item)] || o.ids[formerOf(h.item)] {
		return true
	}
	if l, ordered := c.lineOf(h.item); ordered {
		return o.lines[l]
	}
	return o.workers[int(h.item.Route%uint64(c.p.config.Workers))]
}

// waitFor finds the deliveries that wait, also for one that waits itself: behind it in its
// line, or as its copy.
func (c *checker) waitFor(o *obstacles) map[*handed]bool {
	found := map[*handed]bool{}
	for more := len(o.ids) > 0; more; {
		more = false
		for _, h := range c.hands {
			if !found[h] && c.alive(h) && o.keep(c, h) {
				found[h], more = true, true
				o.add(c, h.item)
			}
		}
	}
	return found
}

// asksOn checks that a store that is away is still asked, as long as something
// waits for it, and that observers know (law 13).
func (c *checker) asksOn() {
	conf := c.p.config
	if c.stopping || len(c.stuckWorkers()) == conf.Workers { // nobody is left to ask
		return
	}
	waiting, stuck := false, c.waitForStuck()
	for _, h := range c.hands {
		waiting = waiting || c.alive(h) && !stuck[h] && !h.asked && h.flight == nil
	}
	patience := 2*conf.BackoffMost + conf.MaxInMemoryWait + 10*c.w.Plan.Lag
	switch {
	case !waiting:
	case c.w.now-c.askedAt > patience:
		c.broke("law 13", "the store has not been asked for %v, and a message waits for it", c.w.now-c.askedAt)
	case !c.known.down:
		c.broke("law 13", "the store is away, and nobody was told")
	default:
		c.w.coverage.Add("fault", "a store away without end is asked on")
	}
}

// beCalm ends the faults. What is open in the store ends by itself.
func (w *world) beCalm() {
	w.calm = true
	w.calmEnds = w.now + w.patienceOfAll()
	w.note("calm")
	w.setClock(0)
	for _, each := range w.worlds() {
		each.store.Down = false
	}
	for _, each := range w.worlds() {
		each.everybody()
		each.poke()
		each.wrapUp()
	}
}

// everybody has each process begin that is not there, and gives out the lanes.
func (w *world) everybody() {
	for seat := range w.seats {
		w.begin(seat)
	}
	for _, l := range w.Source.Lanes {
		w.give(l)
	}
}

// patienceOfAll is patience, with that of a sender.
func (w *world) patienceOfAll() (all time.Duration) {
	for _, each := range w.worlds() {
		all += each.patience()
	}
	return all
}

// patience is how long the machine may take in the calm phase: every message
// may use up its attempts, one after the other, each after its longest wait.
func (w *world) patience() time.Duration {
	c, messages := w.Plan.Config, len(w.Messages)
	if w.main != nil {
		messages = w.mostIntents()
	}
	each := c.MaxDelay + c.MaxInMemoryWait + c.BackoffMost + w.Plan.Timeout + 20*w.Plan.Lag + 2*w.Plan.Lease + c.Poll + 2*c.Gap
	return time.Minute + 2*c.IdleExit + time.Duration(messages*4*(c.MaxAttempts+10))*each
}

// finish is the end of a run: everything is settled and the machine has ended.
func (w *world) finish() {
	if w.over = true; w.sender != nil && !w.sender.over {
		w.note("only the sender goes on")
		w.sender.wrapUp()
		return
	}
	if w.main != nil {
		w.main.conclude()
	}
	w.conclude()
}

// conclude holds all that happened against what is there.
func (w *world) conclude() {
	w.finished = true
	w.note("finished")
	for _, m := range w.Messages {
		if w.checkForeign(m); !m.Foreign || w.Plan.Config.OnFiltered != machine.EndSkip {
			w.checkMessage(m)
			w.checkCalls(m)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.store.Rows), model.RowKey.Compare) {
		r := w.store.Rows[key]
		if w.store.Passed[key.ID] {
			continue // a copy was counted on the row that had the marker then
		}
		if most := r.Settled + r.Doubted + w.store.Lost[key] + w.store.Parted[key.ID]; r.Repeats > most {
			w.broke("case 8", "the row of %s counts %d copies, and no more than %d can have come", key.ID, r.Repeats, most)
		}
	}
	w.checkStreams()
	w.checkAllOwners()
	w.checkLines()
	w.checkIntents()
	w.checkActs()
	w.checkProjection()
}

// checkMessage holds a message against the store, when all is over.
func (w *world) checkMessage(m *model.Message) {
	s := w.store
	effects, marker := s.Effects[m.ID], w.outcomeOf(m)
	if m.Failed > 0 {
		w.arose("law 4")
	}
	unmarked := w.Plan.Config.Unmarked
	switch {
	case s.WasRemoved(m.ID):
		w.checkRemoved(m)
	case effects > 1 && !unmarked:
		w.broke("law 12", "%s has %d effects", m.ID, effects)
	case effects == 1 && marker != store.Applied && !unmarked:
		w.broke("law 12", "%s has an effect and its marker does not say so", m.ID)
	case effects == 0 && marker == store.Applied && !w.SaidDuplicate(m.ID):
		w.broke("law 12", "%s is marked as applied and has no effect", m.ID)
	case effects == 0 && marker == 0 && w.keptAsConflict(m):
		w.arose("A7")
	case effects == 0 && marker == 0 && !w.SaidDuplicate(m.ID) && s.Rows[model.RowKey{ID: m.ID}] == nil:
		w.broke("law 4", "%s is lost", m.Name())
	case marker == store.Parked && s.Rows[model.RowKey{ID: m.ID}] == nil:
		w.broke("law 12", "%s is marked as parked and has no row", m.ID)
	}
}
