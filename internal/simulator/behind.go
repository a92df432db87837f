package simulator

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// drawBlock lets what comes behind a message that waits in the inbox, or is parked, wait
// there, too. Whether it does is told by a number that was drawn before, so that the
// other seeds keep their histories.
func (p *plan) drawBlock() {
	p.config.Block = p.config.Wait && !p.calls && p.streams == 0 && p.config.Lanes != machine.NoOrder && p.config.Seed%4 == 0
}

// lineName is the line that an entry's mark names, "" if it names none: a claim's is that
// which its row stands in.
func (f *flight) lineName(i int) string {
	it := f.of.Entries[i].Item
	switch h := handOf(it); {
	case h.claim != nil && h.claim.row.place == 0:
		return ""
	case h.claim != nil:
		return h.claim.row.line
	case !f.p.config.Block || f.message(i).refused != "":
		return ""
	case f.p.config.Lanes == machine.Key:
		return fmt.Sprint("key ", it.Route)
	}
	return "lane " + handOf(it).delivery.lane.live().id
}

// never is when a row is due that waits for no time.
const never = time.Duration(1 << 62)

// keepsBack reports whether a row keeps those of its line back that come after it.
func (r *row) keepsBack() bool { return r.place > 0 && (r.waits() || r.as == machine.AsParked) }

// follows reports whether a row waits for those before it in its line.
func (r *row) follows() bool { return r.place > 0 && r.as == machine.AsBlocked }

// first is the first row of a line, nil if nothing of it is in the inbox.
func (s *simStore) first(line string) (first *row) {
	for _, r := range s.inbox {
		if r.keepsBack() && r.line == line && (first == nil || r.place < first.place) {
			first = r
		}
	}
	return first
}

// behindParked reports whether nobody but a person can bring a row to its end.
func (s *simStore) behindParked(r *row) bool {
	return r.follows() && s.first(r.line).as == machine.AsParked
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
			if kept[line] || f.p.w.store.first(line) != nil {
				f.verdicts[i].Kind = store.Behind
				f.p.w.coverage.add("fault", "behind another of its line")
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
		f.freed = f.p.w.store.enter(f.p.w.store.rows[f.keyOf(r)], line, f.p.w.now) || f.freed
	}
}

// enter puts a row at the end of a line. It reports whether one that was to follow is the
// first.
func (s *simStore) enter(r *row, line string, now time.Duration) bool {
	r.place = 0
	behind := s.first(line) != nil
	s.places++
	r.line, r.place = line, s.places
	switch {
	case r.as == machine.AsParked:
	case behind:
		r.as, r.reason, r.due = machine.AsBlocked, semel.ReasonBehind, never
	case r.as == machine.AsBlocked:
		r.as, r.reason = machine.AsReceived, ""
		r.dates(now, 0)
		return true
	}
	return false
}

// advance frees the first row of the line that another has left.
func (s *simStore) advance(left *row, by *process, now time.Duration) (freed bool) {
	if left.line == "" || left.keepsBack() {
		return false
	}
	next := s.first(left.line)
	if next == nil || !next.follows() {
		return false
	}
	next.as, next.reason, next.by = machine.AsReceived, "", by
	next.dates(now, 0)
	return true
}

// pass lets a person have the followers of a row go on without it.
func (w *world) pass(r *row) {
	w.fault("a person lets followers pass", "%s", r.key.id)
	if r.follows() {
		r.as, r.reason, r.by = machine.AsReceived, "", nil
		r.dates(w.at(), 0)
	}
	r.place = 0
	w.store.advance(r, nil, w.at())
	w.notify()
}

// inPlace checks that nothing takes effect before an earlier message of its line that is
// in the inbox.
func (c *checker) inPlace(f *flight, x effect) {
	line := f.lineName(x.entry)
	if line == "" {
		return
	}
	for _, r := range c.w.store.inbox {
		if !r.keepsBack() || r.byHand || r.line != line || r.message.id == x.message.id {
			continue
		}
		c.arose("case 7")
		after := c.w.comesAfter(x.message, r.message)
		if d := handOf(f.of.Entries[x.entry].Item).delivery; r.from != nil { // an earlier copy of it had ended
			after = r.from.lane == d.lane && r.from.position < d.position
		}
		if after {
			c.broke("case 7", "%s takes effect, and %s is before it in %s", x.message.name(), r.key.id, line)
		}
	}
}

// comesAfter reports whether a message stands behind another in its lane. Of one that has
// copies in several lanes nobody knows which comes first.
func (w *world) comesAfter(m, other *message) (after bool) {
	for _, l := range w.source.lanes {
		first := func(m *message) int {
			return slices.IndexFunc(l.log, func(d *delivery) bool { return d.message.id == m.id && d.message.refused == "" })
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
	for _, r := range w.store.inbox {
		if r.follows() && w.store.first(r.line) == r {
			w.broke("law 11", "%s waits behind another of %s, and is the first", r.key.id, r.line)
		}
	}
}
