package simulator

import (
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
)

func (w *world) drawMessages() {
	c, p := w.choices, &w.plan
	for i := range p.Messages {
		m := w.drawMessage(i)
		w.publish(m)
		for copies := 0; p.Has[plan.TroubleCopies] && copies < 3 && c.Chance(3); copies++ {
			w.publish(m)
		}
		if p.Has[plan.TroubleCopies] && c.Chance(60) {
			for range c.Between(8, 40) {
				w.publish(m)
			}
		}
		if p.Has[plan.TroubleContent] && m.Refused == "" && c.Chance(6) {
			w.publish(w.otherContent(m))
		}
		w.drawTwins(m)
	}
	w.drawVersions()
	w.shuffleLanes()
	w.drawAges()
}

func (w *world) drawMessage(i int) *model.Message {
	c, p := w.choices, &w.plan
	m := &model.Message{Number: len(w.messages), Route: uint64(c.Below(64)), Size: c.Between(1, 400)}
	// Every identity is used by two sources, for two messages.
	m.Source, m.Identity = []string{"s", "t"}[i%2], "id"+strconv.Itoa(i/2)
	if p.Prints {
		m.Print = semel.Fingerprint{Version: 1, Sum: [16]byte{byte(m.Number), byte(m.Number >> 8), 1}}
	}
	if p.Has[plan.TroubleHandler] && c.Chance(3) {
		m.Conduct = model.Conduct(c.Below(len(model.ConductNames)))
		m.Times = m.Conduct.DrawTimes(c)
	}
	if m.Times == model.Always && m.LooksInnocent() && p.Config.OneAttempt && !p.Queue {
		m.Times = c.Between(1, 8) // nobody counts its deliveries
	}
	if !p.Has[plan.TroubleStuck] && m.Conduct == model.Sticks {
		m.Conduct = model.FailsRetryable
	}
	if p.Calls {
		m.CallsOut()
	}
	switch {
	case c.Chance(25):
		m.Refused, m.Source, m.Identity = "malformed", "surrogate", strconv.Itoa(i)
	case p.Shared && c.Chance(5):
		w.makeForeign(m, i)
	}
	m.ID = m.Source + "/" + m.Identity
	w.drawFormer(m, i)
	w.drawStep(m)
	m.Harmless = m.Conduct == model.Succeeds || m.Conduct == model.MeetsContention || m.Conduct == model.MeetsDown
	w.messages = append(w.messages, m)
	return m
}

// otherContent returns a message of the same identity that says something else.
func (w *world) otherContent(m *model.Message) *model.Message {
	o := *m
	o.Number = len(w.messages)
	if o.Print.Version != 0 {
		o.Print.Sum[2] = byte(2 + w.choices.Below(2))
	}
	// It may differ in what its former identity was; not where followers wait, since the
	// first of an identity could be a conflict then, and the next stand in its place.
	if o.Former != "" && !w.plan.Config.Block && w.choices.Flip() {
		o.Former = "former/" + strconv.Itoa(w.choices.Below(1+len(w.messages)/3))
	}
	w.messages = append(w.messages, &o)
	return &o
}

// publish appends a message to a lane's log.
func (w *world) publish(m *model.Message) {
	l := w.source.Lanes[w.choices.Below(len(w.source.Lanes))]
	l.Log = append(l.Log, &model.Delivery{Message: m, Lane: l})
}

// shuffleLanes moves copies away from their first, and gives each place its
// time.
func (w *world) shuffleLanes() {
	c, p := w.choices, &w.plan
	for _, l := range w.source.Lanes {
		for i := range l.Log {
			if j := i - c.Below(8); j >= 0 && c.Chance(3) {
				l.Log[i], l.Log[j] = l.Log[j], l.Log[i]
			}
		}
		l.Log = lastOfAll(l.Log)
		at := time.Duration(0)
		for i, d := range l.Log {
			if d.Message.Late {
				at += c.Wait(p.Config.Gap)
			}
			d.Position, d.Produced = i, at
			at += p.Span / time.Duration(1+len(l.Log)) * time.Duration(c.Below(5)) / 2
		}
	}
}
