package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
)

// handed is a delivery in the hands of a process.
type handed struct {
	delivery *delivery
	item     *machine.Item
	arrival  int
	claim    *claim // nil: the source delivered it

	handState
}

// poke looks whether the fetches under way can be answered.
func (w *world) poke() {
	for _, p := range w.living() {
		if p.fetch == nil || p.fetch.answering || !p.fetch.cancelled && !w.ends() && !w.source.available(p, w.now) {
			continue
		}
		p.fetch.answering = true
		if p.fetch.cancelled && w.plan.late {
			p.later(time.Duration(w.choices.between(1, 20))*100*time.Millisecond, p.answerFetch)
			continue
		}
		p.soon(p.answerFetch)
	}
}

// ends reports whether the source can say that nothing will follow.
func (w *world) ends() bool { return w.calm && w.plan.ends && w.source.exhausted() }

// answerFetch takes from the source and hands over, a little later: what has
// happened to a lane in between, the machine must sort out.
func (p *process) answerFetch() {
	w := p.w
	f := p.fetch
	f.answering = false
	if f.cancelled && w.hurt(troubleFetch) {
		w.fault("fetch is cancelled before the source was asked", "")
		p.soon(func() { p.fetched(machine.Fetched{Unanswered: true}) })
		f.answering = true
		return
	}
	if w.hurt(troubleFetch) {
		answer := machine.Fetched{Failed: true}
		if w.choices.flip() { // after it has taken some
			answer.Items = p.take(f.most)
		}
		w.fault("fetch fails", "")
		p.soon(func() { p.fetched(answer) })
		f.answering = true
		return
	}
	items := p.take(f.most)
	answer := machine.Fetched{Items: items, End: w.ends()}
	if len(items) == 0 && !answer.End && !f.cancelled {
		w.poke()
		return
	}
	f.answering = true
	if len(items) == 0 && !answer.End && f.ends && w.plan.idler {
		p.askIdle()
		return
	}
	p.soon(func() { p.fetched(answer) })
}

func (p *process) fetched(e machine.Fetched) {
	if len(e.Items) > 0 && p.diesAt(faults.AfterFetch) {
		return
	}
	p.fetch = nil
	p.feed(e)
}

// take takes deliveries up to the bound, and at least one if there is any.
func (p *process) take(most machine.Fetch) []*machine.Item {
	w := p.w
	var items []*machine.Item
	bytes := int64(0)
	first := w.choices.below(len(w.source.lanes))
	for i := range w.source.lanes {
		l := w.source.lanes[(first+i)%len(w.source.lanes)]
		for len(items) < most.Messages {
			d := l.any(w.source, p, w.now)
			if d == nil || len(items) > 0 && bytes+int64(d.message.size) > most.Bytes {
				break
			}
			bytes += int64(d.message.size)
			w.source.hand(d)
			items = append(items, p.item(d))
		}
	}
	return items
}

func (p *process) item(d *delivery) *machine.Item {
	m := d.message
	item := &machine.Item{Lane: d.lane.current(), Source: m.source, Identity: m.identity, Print: m.print, Route: m.route, Size: int32(m.size),
		Before: -1}
	placed(item, m)
	if m.former != "" {
		item.Former = &machine.Name{Source: "former", Identity: m.former}
	}
	if m.refused != "" {
		item.Refused = &machine.Refusal{Reason: m.refused, Foreign: m.foreign}
	}
	if p.w.plan.queue {
		item.Before = int32(d.count - 1)
	}
	if item.Print.Version != 0 {
		item.Print.Version = p.version
		item.Print.Sum[15] = p.version
	}
	h := &handed{delivery: d, item: item}
	if p.config.OneAttempt {
		h.attempts = int(max(item.Before, 0))
	}
	item.Handle = h
	return item
}

// flow pauses or resumes a lane.
func (w *world) flow(a machine.Flow) {
	l := w.source.find(a.Lane.ID)
	if l != nil && l.epoch == a.Lane.Epoch {
		l.paused = !a.On
		w.poke()
	}
}

// settle tells the source.
func (p *process) settle(a *machine.Settle) {
	w := p.w
	p.settles++
	p.soon(func() {
		if p.diesAt(faults.BeforeSettle) {
			return
		}
		left := p.tellSource(a)
		if p.diesAt(faults.AfterSettle) {
			return
		}
		p.soon(func() {
			p.settles--
			p.feed(machine.Settled{Settle: a, Left: left})
			w.poke()
			w.wrapUp()
		})
	})
}

// wrapUp stops machines that would wait for more when everything is settled.
func (w *world) wrapUp() {
	if !w.calm || w.plan.ends || w.plan.config.IdleExit > 0 || !w.allDone() {
		return
	}
	for _, p := range w.living() {
		if p.leaving {
			continue
		}
		p.leaving = true
		p.later(time.Second, p.stop)
	}
}

// tellSource settles what it can and returns what it says it could not: some
// of that was settled all the same.
func (p *process) tellSource(a *machine.Settle) (left []int) {
	w := p.w
	failing := w.hurt(troubleSettle)
	if failing {
		w.fault("settle fails", "")
	}
	for i, s := range a.Items {
		h := s.Item.Handle.(*handed)
		if failing && h.delivery.lane.held && h.delivery.lane.current() == s.Item.Lane && w.choices.flip() {
			left = append(left, i)
			if w.choices.flip() {
				continue
			}
		}
		if l := h.delivery.lane; l.held && l.owner != p {
			w.coverage.add("fault", "settled after another has the lane")
		}
		w.source.settle(h, s.Kind, s.After, w.now)
		if s.Kind == semel.Nack {
			w.after(s.After, w.poke)
		}
	}
	p.storePositions()
	return left
}
