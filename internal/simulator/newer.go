package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// newer is an outcome that only a newer release knows, which shares the store:
// for some time nobody else can tell what became of the identity.
const newer store.Outcome = 9

// longestNewer is how long the newer release takes at most.
const longestNewer = 3 * time.Minute

// endNewer lets the newer release end what it has begun: it has applied it, set it
// aside, or taken its marker back.
func (w *world) endNewer(m *message) {
	marker := w.store.markers[m.id]
	if marker.outcome != newer {
		return
	}
	w.store.changes[m.id]++
	switch w.choices.below(3) {
	case 0:
		delete(w.store.markers, m.id)
		w.note("the newer release takes the marker of %s back", m.name())
		return
	case 1:
		marker.outcome = store.Applied
		if m.version > 0 && !w.isNext(m) {
			marker.outcome = store.Parked
		}
	default:
		marker.outcome = store.Parked
	}
	w.store.markers[m.id] = marker
	w.write(m, marker.outcome)
	w.note("the newer release ends %s as %s", m.name(), marker.outcome)
}

// write writes what goes with a marker of somebody else's.
func (w *world) write(m *message, o store.Outcome) {
	if o == store.Applied {
		w.store.effects[m.id]++
		w.past[m.id] = true
		w.store.log = append(w.store.log, m)
		w.step(m, w.store.markers[m.id].print)
		return
	}
	r := &row{key: rowKey{id: m.id}, as: machine.AsParked, message: m, print: w.store.markers[m.id].print}
	r.dates(w.at(), 0)
	switch o {
	case store.Waiting:
		r.as = machine.AsWaiting
		r.dates(w.at(), w.choices.wait(w.plan.span))
	case store.Discarded:
		r.as = machine.AsDiscarded
	case store.DeadLettered:
		r.as = machine.AsDeadLettered
	}
	w.store.put(r)
}

// unknownHere reports whether only the newer release knows of the item.
func (c *checker) unknownHere(it *machine.Item) bool {
	return !c.p.config.Unmarked && c.w.store.judge(identity(it), it.Print).Kind == store.Newer
}

// heldForNewer checks what is told of a message that a newer release marked.
func (c *checker) heldForNewer(a machine.Report) {
	c.arose("P1")
	if a.Wait < time.Second {
		c.broke("P1", "%s is told of after %v", showItem(a.Item), a.Wait)
	}
}

// behind checks what is left by a run that ends idle: only messages that a newer
// release marked, their copies, and what stands behind those in their lanes. The
// machine names their lanes.
func (c *checker) behind(a machine.Done) {
	want := map[source.Lane]int{}
	lines, copies := map[line]bool{}, map[string]bool{}
	for _, h := range c.hands {
		if h.told || h.stale || c.lanes[h.item.Lane].revoking {
			continue
		}
		id := h.item.Source + "\x00" + h.item.Identity
		l, ordered := c.lineOf(h.item)
		if h.asked || h.flight != nil || !h.newer && !copies[id] && !copies[formerOf(h.item)] && !(ordered && lines[l]) {
			c.broke("law 11", "it is idle with %s unsettled", showItem(h.item))
			return
		}
		want[h.item.Lane]++
		lines[l], copies[id], copies[formerOf(h.item)] = true, true, true
	}
	if len(want) > 0 {
		c.arose("P1")
		c.w.coverage.add("fault", "run ends idle with what a newer release marked")
	}
	for _, b := range a.Behind {
		if want[b.Lane] != b.Messages {
			c.broke("P1", "%d messages of %s are named as left, and %d are", b.Messages, b.Lane.ID, want[b.Lane])
		}
		delete(want, b.Lane)
	}
	if len(want) > 0 {
		c.broke("P1", "it is idle, and does not name %d lanes of which something is left", len(want))
	}
}

// fullOfNewer checks that fetching stands still when the machine says so.
func (c *checker) fullOfNewer(a machine.Report) {
	messages, bytes := c.unsettled()
	if messages != a.N || messages < c.p.config.MaxMessages && bytes < c.p.config.MaxBytes || c.fetching {
		c.broke("P1", "%d messages are said to leave no room, and %d of %d bytes are held", a.N, messages, bytes)
	}
}
