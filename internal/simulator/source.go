package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// itemState is a delivery or a claimed message that a process has.
type itemState struct {
	delivery *model.Delivery
	item     *machine.Item
	arrival  int
	claim    *model.Claim // nil if the source delivered the message

	handState
}

// poke checks which fetches in progress can return now.
func (w *world) poke() {
	for _, p := range w.living() {
		if p.fetch == nil || p.fetch.answering || !p.fetch.cancelled && !w.ends() && !w.Source.Available(p, w.now) {
			continue
		}
		p.fetch.answering = true
		if p.fetch.cancelled && w.Plan.Late {
			p.schedule(time.Duration(w.choices.Between(1, 20))*100*time.Millisecond, p.answerFetch)
			continue
		}
		p.scheduleSoon(p.answerFetch)
	}
}

// ends reports whether the source can report its end now.
func (w *world) ends() bool { return w.calm && w.Plan.Ends && w.Source.Exhausted() }

// answerFetch takes deliveries from the source, and passes them to the machine after a short time. Lanes may be lost or
// assigned before the deliveries reach the machine, and the machine must handle such changes.
func (p *process) answerFetch() {
	w := p.w
	f := p.fetch
	f.answering = false
	if f.cancelled && w.hurt(plan.TroubleFetch) {
		w.recordFault("fetch is cancelled before the source was asked", "")
		p.scheduleSoon(func() { p.fetched(machine.Fetched{Unanswered: true}) })
		f.answering = true
		return
	}
	if w.hurt(plan.TroubleFetch) {
		answer := machine.Fetched{Failed: true}
		if w.choices.Flip() { // some deliveries were taken before the fetch failed
			answer.Items = p.take(f.most)
		}
		w.recordFault("fetch fails", "")
		p.scheduleSoon(func() { p.fetched(answer) })
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
	if len(items) == 0 && !answer.End && f.ends && w.Plan.Idler {
		p.askIdle()
		return
	}
	p.scheduleSoon(func() { p.fetched(answer) })
}

func (p *process) fetched(e machine.Fetched) {
	if len(e.Items) > 0 && p.diesAt(faults.AfterFetch) {
		return
	}
	p.fetch = nil
	p.feed(e)
}

// take takes deliveries up to a limit, but at least one delivery if the source has any.
func (p *process) take(most machine.Fetch) []*machine.Item {
	w := p.w
	var items []*machine.Item
	bytes := int64(0)
	first := w.choices.Below(len(w.Source.Lanes))
	for i := range w.Source.Lanes {
		l := w.Source.Lanes[(first+i)%len(w.Source.Lanes)]
		for len(items) < most.Messages {
			d := l.Any(w.Source, p, w.now)
			if d == nil || len(items) > 0 && bytes+int64(d.Message.Size) > most.Bytes {
				break
			}
			bytes += int64(d.Message.Size)
			w.Source.Hand(d)
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
	if p.w.Plan.Queue {
		item.Before = int32(d.Count - 1)
	}
	if item.Print.Version != 0 {
		item.Print.Version = p.version
		item.Print.Sum[15] = p.version
	}
	h := &itemState{delivery: d, item: item}
	if p.config.OneAttempt {
		h.attempts = int(max(item.Before, 0))
	}
	item.Handle = h
	return item
}

// flow pauses or resumes a lane.
func (w *world) flow(a machine.Flow) {
	l := w.Source.Find(a.Lane.ID)
	if l != nil && l.Epoch == a.Lane.Epoch {
		l.Paused = !a.On
		w.poke()
	}
}

// settle acks, nacks or dead-letters deliveries in the source, and sends the response to the machine.
func (p *process) settle(a *machine.Settle) {
	w := p.w
	p.settles++
	p.scheduleSoon(func() {
		if p.diesAt(faults.BeforeSettle) {
			return
		}
		left := p.tellSource(a)
		if p.diesAt(faults.AfterSettle) {
			return
		}
		p.scheduleSoon(func() {
			p.settles--
			p.feed(machine.Settled{Settle: a, Left: left})
			w.poke()
			w.wrapUp()
		})
	})
}

// wrapUp stops the machines when all messages are acked, because the machines would otherwise wait for more messages.
func (w *world) wrapUp() {
	if !w.calm || w.Plan.Ends || w.Plan.Config.IdleExit > 0 || !w.allDone() {
		return
	}
	for _, p := range w.living() {
		if p.leaving {
			continue
		}
		p.leaving = true
		p.schedule(time.Second, p.sendStop)
	}
}

// tellSource acks, nacks or dead-letters deliveries in the source. The result contains the deliveries that the source
// reports as failed; some of these deliveries were acked nevertheless.
func (p *process) tellSource(a *machine.Settle) (left []int) {
	w := p.w
	failing := w.hurt(plan.TroubleSettle)
	if failing {
		w.recordFault("settle fails", "")
	}
	for i, s := range a.Items {
		h := s.Item.Handle.(*itemState)
		if failing && h.delivery.Lane.Held && h.delivery.Lane.Current() == s.Item.Lane && w.choices.Flip() {
			left = append(left, i)
			if w.choices.Flip() {
				continue
			}
		}
		if l := h.delivery.Lane; l.Held && l.Owner != p {
			w.coverage.Add("fault", "settled after another has the lane")
		}
		w.Source.Settle(h.delivery, h.item.Lane.Epoch, s.Kind, s.After, w.now)
		if s.Kind == semel.Nack {
			w.schedule(s.After, w.poke)
		}
	}
	p.storePositions()
	return left
}

// cancelFetch ends a waiting Fetch. During a stop, cancelFetch also ends a call of source.Info.Idle.
func (p *process) cancelFetch(a machine.CancelFetch) {
	f := p.fetch
	if f == nil {
		return
	}
	f.cancelled, f.ends = true, a.Idle
	if f.asking && !a.Idle {
		p.w.coverage.Add("fault", "stop while the source is asked whether it has more")
		p.saysIdle(f)
	}
	p.w.poke()
}

// askIdle asks the source whether it is idle. The source may take long to answer.
func (p *process) askIdle() {
	w, f := p.w, p.fetch
	f.asking = true
	if w.hurt(plan.TroubleStop) {
		p.scheduleSoon(p.sendStop)
	}
	p.schedule(w.choices.Wait(2*time.Second), func() { p.saysIdle(f) })
}

// saysIdle passes the answer of source.Info.Idle to the machine.
func (p *process) saysIdle(f *fetching) {
	if p.fetch != f || !f.asking {
		return
	}
	f.asking = false
	p.scheduleSoon(func() { p.fetched(machine.Fetched{More: p.w.Source.HasMore(p)}) })
}

// fetchState is what the checker knows about the last Fetch.
type fetchState struct {
	// canceled is true if the machine cancelled the Fetch in progress. ends is true if the machine cancelled the Fetch
	// because the run would end idle.
	canceled, ends bool
	// The field empty is true if the Fetch that was cancelled because the run would end idle returned nothing at the
	// time at, and the source had no more messages.
	empty bool
	at    time.Duration
	// lastMore is the last time when the source reported that it has more messages. hadMore is true if the
	// source ever reported more messages.
	lastMore time.Duration
	hadMore  bool
}

// checkCancelFetch is called when the machine cancels a Fetch.
func (c *checker) checkCancelFetch(a machine.CancelFetch) {
	if !c.fetching {
		c.broke("protocol", "%s without a Fetch under way", trace.Action(a))
		return
	}
	s := &c.lastFetch
	if a.Idle {
		c.arose("trap T95")
		if s.canceled || c.stopping {
			c.broke("protocol", "%s of one that is cancelled already", trace.Action(a))
		}
		if s.hadMore && c.w.now-s.lastMore < c.p.config.IdleExit {
			c.broke("trap T95", "the source is asked for more %v after it had more", c.w.now-s.lastMore)
		}
	}
	s.canceled, s.ends = true, a.Idle
}

// checkFetchResult is called before the machine gets the result of a Fetch.
func (c *checker) checkFetchResult(e machine.Fetched) {
	s := &c.lastFetch
	s.empty = len(e.Items) == 0 && !e.More && !e.Failed && !e.Unanswered && s.ends
	s.at = c.w.now
	if e.More {
		s.lastMore, s.hadMore = c.w.now, true
		c.claims.triggers++ // the further messages may be in the inbox
		c.w.coverage.Add("fault", "source has more when a run would end")
	}
	if len(e.Items) == 0 && s.canceled && !s.ends && !c.stopping && c.p.config.IdleExit > 0 {
		c.w.coverage.Add("fault", "fetch of a run that may end is cancelled for another reason")
	}
	s.canceled, s.ends = false, false
}

// checkAsking checks that a stop also ends a call of source.Info.Idle. If the call did not end, the stop would wait for
// the answer of the source (case 10).
func (c *checker) checkAsking() {
	if !c.over && c.stopping && c.fetching && c.lastFetch.ends {
		c.broke("case 10", "the machine stops, and the source is still asked whether it has more")
	}
}

// checkIdle checks that a process ends idle only because the source has ended, or because the source said that it
// has no more messages.
func (c *checker) checkIdle() {
	messages, bytes := c.unsettled()
	conf := c.p.config
	switch {
	case c.sourceEnded:
	case (messages >= conf.MaxMessages || bytes >= conf.MaxBytes) && conf.IdleExit > 0: // while memory is full, nothing is fetched
	case conf.IdleExit == 0 || c.p.time() < conf.IdleExit:
		c.broke("protocol", "it is idle after %v, and may be after %v", c.p.time(), conf.IdleExit)
	case !c.lastFetch.empty:
		c.broke("trap T95", "it ends idle, and nobody has asked whether the source has more")
	case c.w.now-c.lastFetch.at > 100*time.Millisecond:
		c.broke("trap T95", "it ends idle on what the source said %v ago", c.w.now-c.lastFetch.at)
	}
}
