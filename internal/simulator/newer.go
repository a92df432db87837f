package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// longestNewer is how long the newer release takes at most.
const longestNewer = 3 * time.Minute

// endNewer lets the newer release end what it has begun: it has applied it, set it
// aside, or taken its marker back.
func (w *world) endNewer(m *model.Message) {
	marker := w.store.Markers[m.ID]
	if marker.Outcome != model.Newer {
		return
	}
	w.store.Changes[m.ID]++
	switch w.choices.Below(3) {
	case 0:
		delete(w.store.Markers, m.ID)
		w.note("the newer release takes the marker of %s back", m.Name())
		return
	case 1:
		marker.Outcome = store.Applied
		if m.Version > 0 && !w.isNext(m) {
			marker.Outcome = store.Parked
		}
	default:
		marker.Outcome = store.Parked
	}
	w.store.Markers[m.ID] = marker
	w.write(m, marker.Outcome)
	w.note("the newer release ends %s as %s", m.Name(), marker.Outcome)
}

// write writes what goes with a marker of somebody else's.
func (w *world) write(m *model.Message, o store.Outcome) {
	if o == store.Applied {
		w.store.Effects[m.ID]++
		w.past[m.ID] = true
		w.store.Log = append(w.store.Log, m)
		w.step(m, w.store.Markers[m.ID].Print)
		return
	}
	r := &model.Row{Key: model.RowKey{ID: m.ID}, As: machine.AsParked, Message: m, Print: w.store.Markers[m.ID].Print}
	r.Dates(w.at(), 0)
	switch o {
	case store.Waiting:
		r.As = machine.AsWaiting
		r.Dates(w.at(), w.choices.Wait(w.plan.Span))
	case store.Discarded:
		r.As = machine.AsDiscarded
	case store.DeadLettered:
		r.As = machine.AsDeadLettered
	}
	w.store.Put(r)
}

// unknownHere reports whether only the newer release knows of the item.
func (c *checker) unknownHere(it *machine.Item) bool {
	return !c.p.config.Unmarked && c.w.store.Judge(identity(it), it.Print).Kind == store.Newer
}

// heldForNewer checks what is told of a message that a newer release marked.
func (c *checker) heldForNewer(a machine.Report) {
	c.arose("P1")
	if a.Wait < time.Second {
		c.broke("P1", "%s is told of after %v", trace.Item(a.Item), a.Wait)
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
			c.broke("law 11", "it is idle with %s unsettled", trace.Item(h.item))
			return
		}
		want[h.item.Lane]++
		lines[l], copies[id], copies[formerOf(h.item)] = true, true, true
	}
	if len(want) > 0 {
		c.arose("P1")
		c.w.coverage.Add("fault", "run ends idle with what a newer release marked")
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
