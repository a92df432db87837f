package simulator

import (
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
)

// drawVersions gives messages their places in streams. Some versions never come, some
// come late, and some are used by two messages.
func (w *world) drawVersions() {
	c, p := w.choices, &w.plan
	if p.Streams == 0 {
		return
	}
	last, first, routes := map[string]int64{}, map[string]*model.Message{}, map[string]uint64{}
	for _, m := range w.messages[:len(w.messages):len(w.messages)] {
		if m.Refused != "" {
			continue
		}
		if same := first[m.ID]; same != nil { // another content of the identity
			m.Stream, m.Version, m.Route, m.Late = same.Stream, same.Version, same.Route, same.Late
			continue
		}
		first[m.ID] = m
		m.Stream = m.Source + "/" + string(rune('a'+c.Below(p.Streams)))
		if _, known := routes[m.Stream]; !known {
			routes[m.Stream] = m.Route
		}
		last[m.Stream]++
		if c.Chance(30) {
			w.coverage.Add("fault", "version missing for ever")
			last[m.Stream]++
		}
		m.Version, m.Route, m.Late = last[m.Stream], routes[m.Stream], c.Chance(15)
		if c.Chance(15) {
			w.publish(w.twin(m))
		}
	}
}

// twin returns another message with a message's version: it says the same, or
// something else.
func (w *world) twin(m *model.Message) *model.Message {
	t := *m
	t.Number = len(w.messages)
	t.Identity += "twin"
	t.ID, t.Late = t.Source+"/"+t.Identity, w.choices.Flip()
	if t.Print.Version != 0 && w.choices.Flip() {
		t.Print.Sum[2] = 9
	}
	w.messages = append(w.messages, &t)
	return &t
}

// lastOfAll moves what comes late to the end of a lane.
func lastOfAll(log []*model.Delivery) []*model.Delivery {
	var early, late []*model.Delivery
	for _, d := range log {
		if d.Message.Late {
			late = append(late, d)
		} else {
			early = append(early, d)
		}
	}
	return append(early, late...)
}

// placed gives an item its message's place in a stream.
func placed(it *machine.Item, m *model.Message) {
	if m.Version > 0 {
		it.Version = &machine.Version{Stream: m.Stream, Number: m.Version}
	}
}
