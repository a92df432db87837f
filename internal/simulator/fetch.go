package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
)

// handed is a delivery in the hands of a process.
type handed struct {
	delivery *model.Delivery
	item     *machine.Item
	arrival  int
	claim    *model.Claim // nil: the source delivered it

	handState
}

// poke looks whether the fetches under way can be answered.
func (w *world) poke() {
	for _, p := range w.living() {
		if p.fetch == nil || p.fetch.answering || !p.fetch.cancelled && !w.ends() && !w.source.Available(p, w.now) {
			continue
		}
		p.fetch.answering = true
		if p.fetch.cancelled && w.plan.Late {
			p.later(time.Duration(w.choices.Between(1, 20))*100*time.Millisecond, p.answerFetch)
			continue
		}
		p.soon(p.answerFetch)
	}
}

// ends reports whether the source can say that nothing will follow.
func (w *world) ends() bool { return w.calm && w.plan.Ends && w.source.Exhausted() }

// answerFetch takes from the source and hands over, a little later: what has
// happened to a lane in between, the machine must sort out.
func (p *process) answerFetch() {
	w := p.w
	f := p.fetch
	f.answering = false
	if f.cancelled && w.hurt(plan.TroubleFetch) {
		w.fault("fetch is cancelled before the source was asked", "")
		p.soon(func() { p.fetched(machine.Fetched{Unanswered: true}) })
		f.answering = true
		return
	}
	if w.hurt(plan.TroubleFetch) {
		answer := machine.Fetched{Failed: true}
		if w.choices.Flip() { // after it has taken some
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
	if len(items) == 0 && !answer.End && f.ends && w.plan.Idler {
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
	first := w.choices.Below(len(w.source.Lanes))
	for i := range w.source.Lanes {
		l := w.source.Lanes[(first+i)%len(w.source.Lanes)]
		for len(items) < most.Messages {
			d := l.Any(w.source, p, w.now)
			if d == nil || len(items) > 0 && bytes+int64(d.Message.Size) > most.Bytes {
				break
			}
			bytes += int64(d.Message.Size)
			w.source.Hand(d)
			items = append(items, p.item(d))
		}
	}
	return items
}

func (p *process) item(d *model.Delivery) *machine.Item {
	m := d.Message
	item := &machine.Item{Lane: d.Lane.Current(), Source: m.Source, Identity: m.Identity, Print: m.Print, Route: m.Route, Size: int32(m.Size),
		Before: -1}
	placed(item, m)
	if m.Former != "" {
		item.Former = &machine.Name{Source: "former", Identity: m.Former}
	}
	if m.Refused != "" {
		item.Refused = &machine.Refusal{Reason: m.Refused, Foreign: m.Foreign}
	}
	if p.w.plan.Queue {
		item.Before = int32(d.Count - 1)
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
	l := w.source.Find(a.Lane.ID)
	if l != nil && l.Epoch == a.Lane.Epoch {
		l.Paused = !a.On
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
	if !w.calm || w.plan.Ends || w.plan.Config.IdleExit > 0 || !w.allDone() {
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
	failing := w.hurt(plan.TroubleSettle)
	if failing {
		w.fault("settle fails", "")
	}
	for i, s := range a.Items {
		h := s.Item.Handle.(*handed)
		if failing && h.delivery.Lane.Held && h.delivery.Lane.Current() == s.Item.Lane && w.choices.Flip() {
			left = append(left, i)
			if w.choices.Flip() {
				continue
			}
		}
		if l := h.delivery.Lane; l.Held && l.Owner != p {
			w.coverage.Add("fault", "settled after another has the lane")
		}
		w.source.Settle(h.delivery, h.item.Lane.Epoch, s.Kind, s.After, w.now)
		if s.Kind == semel.Nack {
			w.after(s.After, w.poke)
		}
	}
	p.storePositions()
	return left
}
