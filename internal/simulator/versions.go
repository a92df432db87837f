package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// drawStreams lets messages be versions of streams. Whether they are is told by a
// number that was drawn before, so that the other seeds keep their histories.
func (p *plan) drawStreams(c *choices) {
	if !p.config.Wait || p.calls || p.config.Seed%2 == 0 {
		return
	}
	p.streams = c.between(1, 4)
	if p.config.OnConflict != machine.EndKeepFirst {
		p.config.OnConflict = machine.EndPark // what else there is, conflicts of identities show
	}
	p.config.ClaimsAlone = p.steps > 0 // as the shell has it
	p.config.Gap = time.Duration(c.between(1, 12)) * 500 * time.Millisecond
	if p.config.Seed%3 == 0 {
		p.config.GapCap = int64(p.config.Seed / 3 % 3)
	}
}

// drawVersions gives messages their places in streams. Some versions never come, some
// come late, and some are used by two messages.
func (w *world) drawVersions() {
	c, p := w.choices, &w.plan
	if p.streams == 0 {
		return
	}
	last, first, routes := map[string]int64{}, map[string]*message{}, map[string]uint64{}
	for _, m := range w.messages[:len(w.messages):len(w.messages)] {
		if m.refused != "" {
			continue
		}
		if same := first[m.id]; same != nil { // another content of the identity
			m.stream, m.version, m.route, m.late = same.stream, same.version, same.route, same.late
			continue
		}
		first[m.id] = m
		m.stream = m.source + "/" + string(rune('a'+c.below(p.streams)))
		if _, known := routes[m.stream]; !known {
			routes[m.stream] = m.route
		}
		last[m.stream]++
		if c.chance(30) {
			w.coverage.add("fault", "version missing for ever")
			last[m.stream]++
		}
		m.version, m.route, m.late = last[m.stream], routes[m.stream], c.chance(15)
		if c.chance(15) {
			w.publish(w.twin(m))
		}
	}
}

// twin returns another message with a message's version: it says the same, or
// something else.
func (w *world) twin(m *message) *message {
	t := *m
	t.number = len(w.messages)
	t.identity += "twin"
	t.id, t.late = t.source+"/"+t.identity, w.choices.flip()
	if t.print.Version != 0 && w.choices.flip() {
		t.print.Sum[2] = 9
	}
	w.messages = append(w.messages, &t)
	return &t
}

// lastOfAll moves what comes late to the end of a lane.
func lastOfAll(log []*delivery) []*delivery {
	var early, late []*delivery
	for _, d := range log {
		if d.message.late {
			late = append(late, d)
		} else {
			early = append(early, d)
		}
	}
	return append(early, late...)
}

// placed gives an item its message's place in a stream.
func placed(it *machine.Item, m *message) {
	if m.version > 0 {
		it.Version = &machine.Version{Stream: m.stream, Number: m.version}
	}
}
