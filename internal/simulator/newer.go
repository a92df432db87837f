package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/machine"
)

// newer is an outcome that only a newer release knows, which shares the store:
// for some time nobody else can tell what became of the identity.
const newer semel.Outcome = 9

// longestNewer is how long the newer release takes at most.
const longestNewer = 3 * time.Minute

// endNewer lets the newer release end what it has begun: it has applied it, set it
// aside, or taken its marker back.
func (w *world) endNewer(m *message) {
	marker := w.store.markers[m.id]
	if marker.outcome != newer {
		return
	}
	switch w.choices.below(3) {
	case 0:
		delete(w.store.markers, m.id)
		w.note("the newer release takes the marker of %s back", m.name())
		return
	case 1:
		marker.outcome = semel.Applied
	default:
		marker.outcome = semel.Parked
	}
	w.store.markers[m.id] = marker
	w.write(m, marker.outcome)
	w.note("the newer release ends %s as %s", m.name(), marker.outcome)
}

// write writes what goes with a marker of somebody else's.
func (w *world) write(m *message, o semel.Outcome) {
	if o == semel.Applied {
		w.store.effects[m.id]++
		w.store.log = append(w.store.log, m)
		return
	}
	w.store.rows[rowKey{id: m.id}] = &row{as: machine.AsParked}
}

// unknownHere reports whether only the newer release knows of the item.
func (c *checker) unknownHere(it *machine.Item) bool {
	return !c.p.config.Unmarked && c.w.store.judge(identity(it), it.Print).Kind == contract.Newer
}

// heldForNewer checks what is told of a message that a newer release marked.
func (c *checker) heldForNewer(a machine.Report) {
	c.arose("P1")
	if a.Wait < time.Second {
		c.broke("P1", "%s is told of after %v", showItem(a.Item), a.Wait)
	}
}
