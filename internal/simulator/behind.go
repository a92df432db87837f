package simulator

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// lineName is the line that an entry's mark names, "" if it names none: a claim's is that
// which its row stands in.
func (f *flight) lineName(i int) string {
	it := f.of.Entries[i].Item
	switch h := handOf(it); {
	case h.claim != nil && h.claim.Row.Place == 0:
		return ""
	case h.claim != nil:
		return h.claim.Row.Line
	case !f.p.config.Block || f.message(i).Refused != "":
		return ""
	case f.p.config.Lanes == machine.Key:
		return fmt.Sprint("key ", it.Route)
	}
	return "lane " + handOf(it).delivery.Lane.Live().ID
}

// lookBehind answers the fresh marks that may run and have something of their line before
// them: in the inbox, or in this flight on its way there.
func (f *flight) lookBehind() {
	kept := map[string]bool{}
	for i, e := range f.of.Entries {
		line := f.lineName(i)
		if line == "" || handOf(e.Item).claim != nil || f.verdicts[i].Kind != store.Fresh {
			continue
		}
		switch e.As {
		case machine.AsApplied, machine.AsDuplicate:
			if kept[line] || f.p.w.store.First(line) != nil {
				f.verdicts[i].Kind = store.Behind
				f.p.w.coverage.Add("fault", "behind another of its line")
			}
		case machine.AsReceived, machine.AsWaiting, machine.AsBlocked, machine.AsParked:
			kept[line] = true
		}
	}
}

// enterLines has the rows of a commit take their places.
func (f *flight) enterLines(rows []machine.Row) {
	for _, r := range rows {
		line := f.lineName(r.Entry)
		if line == "" || r.Repeat || r.Conflict || !slices.Contains([]machine.As{machine.AsReceived, machine.AsWaiting, machine.AsBlocked, machine.AsParked}, r.As) {
			continue
		}
		f.freed = f.p.w.store.Enter(f.p.w.store.Rows[f.keyOf(r)], line, f.p.w.now) || f.freed
	}
}

// pass lets a person have the followers of a row go on without it.
func (w *world) pass(r *model.Row) {
	w.fault("a person lets followers pass", "%s", r.Key.ID)
	if r.Follows() {
		r.As, r.Reason, r.By = machine.AsReceived, "", nil
		r.Dates(w.at(), 0)
	}
	r.Place = 0
	w.store.Advance(r, nil, w.at())
	w.notify()
}

// inPlace checks that nothing takes effect before an earlier message of its line that is
// in the inbox.
func (c *checker) inPlace(f *flight, x model.Effect) {
	line := f.lineName(x.Entry)
	if line == "" {
		return
	}
	for _, r := range c.w.store.Inbox {
		if !r.KeepsBack() || r.ByHand || r.Line != line || r.Message.ID == x.Message.ID {
			continue
		}
		c.arose("case 7")
		after := c.w.comesAfter(x.Message, r.Message)
		if d := handOf(f.of.Entries[x.Entry].Item).delivery; r.From != nil { // an earlier copy of it had ended
			after = r.From.Lane == d.Lane && r.From.Position < d.Position
		}
		if after {
			c.broke("case 7", "%s takes effect, and %s is before it in %s", x.Message.Name(), r.Key.ID, line)
		}
	}
}

// comesAfter reports whether a message stands behind another in its lane. Of one that has
// copies in several lanes nobody knows which comes first.
func (w *world) comesAfter(m, other *model.Message) (after bool) {
	for _, l := range w.source.Lanes {
		first := func(m *model.Message) int {
			return slices.IndexFunc(l.Log, func(d *model.Delivery) bool { return d.Message.ID == m.ID && d.Message.Refused == "" })
		}
		x, y := first(m), first(other)
		if x >= 0 && y >= 0 && y < x {
			after = true
		} else if x >= 0 || y >= 0 {
			return false
		}
	}
	return after
}

// checkLines looks, when all is over, whether something waits for nothing.
func (w *world) checkLines() {
	for _, r := range w.store.Inbox {
		if r.Follows() && w.store.First(r.Line) == r {
			w.broke("law 11", "%s waits behind another of %s, and is the first", r.Key.ID, r.Line)
		}
	}
}
