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

// longOutage is the duration of an outage that lasts until the end of its phase.
const longOutage = 2 * time.Minute

// endure runs the phase between the phase with faults and the calm phase. A single fault lasts for the whole phase: the
// store stays down, or a handler does not return. Work that does not depend on the fault must continue, and a stop must
// still end the machine.
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
		w.recordFault("store away without end", "")
		w.takeStore()
		if w.Plan.Config.OneAttempt { // all messages are nacked, and the broker delivers them again
			w.mostSteps *= 20
		}
		w.schedule(longOutage, w.endEndurance)
	case w.stuckForGood() > 0:
		if w.Plan.Config.Inbox || w.sender != nil { // the machine claims and releases the rows for the stuck worker again and again
			w.mostSteps *= 20
		}
		w.schedule(w.patienceOfAll(), w.endEndurance)
	default:
		w.beCalm()
	}
}

// endEndurance checks the deliveries that do not depend on the fault, and stops all processes.
func (w *world) endEndurance() {
	drain := time.Duration(0)
	for _, each := range w.worlds() {
		drain = max(drain, each.Plan.Config.Drain)
		each.endAll(w.Plan.Away)
	}
	w.schedule(drain+2*time.Second, w.beCalm)
}

// endAll checks the deliveries that do not depend on the fault, and stops all processes. The parameter away is true if
// the fault is an outage of the store.
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

// stuckForGood returns the number of handlers that never return.
func (w *world) stuckForGood() (n int) {
	for _, each := range w.worlds() {
		for _, p := range each.living() {
			n += len(p.check.stuck)
		}
	}
	return n
}

// sticks is called for a batch whose handler will never return.
func (c *checker) sticks(f *machine.Flight) { c.stuck = append(c.stuck, f) }

// alive reports whether the machine must still process or ack a delivery.
func (c *checker) alive(h *itemState) bool { return !h.settled && !h.stale }

// othersWentOn checks that all deliveries that need not wait for a stuck handler have ended (laws 7 and 8).
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

// stuckWorkers returns the workers whose handlers never return.
func (c *checker) stuckWorkers() map[int]bool {
	workers := map[int]bool{}
	for _, s := range c.stuck {
		workers[s.Worker] = true
	}
	return workers
}

// waitForStuck returns the deliveries that wait for a stuck handler: the deliveries in the handler's batch, and the
// deliveries that wait for deliveries in that batch.
func (c *checker) waitForStuck() map[*itemState]bool {
	o := newObstacles(c.stuckWorkers())
	for _, f := range c.stuck {
		for _, e := range f.Entries {
			o.add(c, e.Item)
		}
	}
	return c.waitFor(o)
}

// waitForSource returns the deliveries that are being acked, nacked or dead-lettered, including the deliveries of the
// Settle a, and the deliveries that wait for them: copies, and later messages of the same key or lane as a dead letter.
func (c *checker) waitForSource(a *machine.Settle) map[*itemState]bool {
	o := newObstacles(nil)
	add := func(it *machine.Item, copying bool) {
		switch {
		case copying:
			o.add(c, it)
		case !c.skips(handOf(it).delivery.Message): // skipped messages have no copies
			o.addCopies(it)
		}
	}
	for _, h := range c.hands {
		if c.alive(h) && (h.settling || h.settleFailed) {
			add(h.item, h.copying)
		}
	}
	for _, s := range a.Items {
		add(s.Item, s.Kind == semel.DeadLetter)
	}
	return c.waitFor(o)
}

// obstacles contains what deliveries wait for: lines (queues of a key or lane), identities and, for messages without an
// order, workers.
type obstacles struct {
	lines   map[line]bool
	ids     map[string]bool
	workers map[int]bool
}

func newObstacles(workers map[int]bool) *obstacles {
	return &obstacles{map[line]bool{}, map[string]bool{}, workers}
}

func (o *obstacles) addCopies(it *machine.Item) {
	o.ids[identityOf(it)], o.ids[formerOf(it)] = true, true
}

func (o *obstacles) add(c *checker, it *machine.Item) {
	o.addCopies(it)
	if l, ordered := c.lineOf(it); ordered {
		o.lines[l] = true
	}
}

// keep reports whether a delivery must wait for an obstacle.
func (o *obstacles) keep(c *checker, h *itemState) bool {
	if o.ids[identityOf(h.item)] || o.ids[formerOf(h.item)] {
		return true
	}
	if l, ordered := c.lineOf(h.item); ordered {
		return o.lines[l]
	}
	return o.workers[int(h.item.Route%uint64(c.p.config.Workers))]
}

// waitFor returns the deliveries that wait for an obstacle, directly or because an earlier message of their line (queue
// of a key or lane), or another copy, waits.
func (c *checker) waitFor(o *obstacles) map[*itemState]bool {
	found := map[*itemState]bool{}
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

// asksOn checks that the machine continues to ask whether the store works again, as long as a message waits
// for the store, and that observers were notified (law 13).
func (c *checker) asksOn() {
	conf := c.p.config
	if c.stopping || len(c.stuckWorkers()) == conf.Workers { // no worker is free to ask
		return
	}
	waiting, stuck := false, c.waitForStuck()
	for _, h := range c.hands {
		waiting = waiting || c.alive(h) && !stuck[h] && !h.settling && h.flight == nil
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

// beCalm ends the phase with faults. Open transactions end later.
func (w *world) beCalm() {
	w.calm = true
	w.calmEnds = w.now + w.patienceOfAll()
	w.logLine("calm")
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

// everybody starts all processes that do not run, and assigns the lanes.
func (w *world) everybody() {
	for seat := range w.seats {
		w.begin(seat)
	}
	for _, l := range w.Source.Lanes {
		w.give(l)
	}
}

// patienceOfAll returns the patience for the main consumer and for the sender of intents together.
func (w *world) patienceOfAll() (all time.Duration) {
	for _, each := range w.worlds() {
		all += each.patience()
	}
	return all
}

// patience returns how long the machine may take in the calm phase: every message may use all its attempts,
// one after the other, with the longest delays.
func (w *world) patience() time.Duration {
	c, messages := w.Plan.Config, len(w.Messages)
	if w.main != nil {
		messages = w.mostIntents()
	}
	each := c.MaxDelay + c.MaxInMemoryWait + c.BackoffMost + w.Plan.Timeout + 20*w.Plan.Lag + 2*w.Plan.Lease + c.Poll + 2*c.Gap
	return time.Minute + 2*c.IdleExit + time.Duration(messages*4*(c.MaxAttempts+10))*each
}

// finish checks the end of a run: all messages are acked or dead-lettered, and the machine has ended.
func (w *world) finish() {
	if w.over = true; w.sender != nil && !w.sender.over {
		w.logLine("only the sender goes on")
		w.sender.wrapUp()
		return
	}
	if w.main != nil {
		w.main.conclude()
	}
	w.conclude()
}

// conclude compares the final state of the store with the history of the run.
func (w *world) conclude() {
	w.finished = true
	w.logLine("finished")
	for _, m := range w.Messages {
		if w.checkForeign(m); !m.Foreign || w.Plan.Config.OnFiltered != machine.EndSkip {
			w.checkMessage(m)
			w.checkCalls(m)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.store.Rows), model.RowKey.Compare) {
		r := w.store.Rows[key]
		if w.store.Passed[key.ID] {
			continue // a copy was counted on the row that had the marker at that time
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

// checkMessage compares a message with the final state of the store.
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
