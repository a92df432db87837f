package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// cancelFetch ends a Fetch that waits, and with a stop also the question whether
// the source has more.
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

// askIdle asks the source whether it has more. It may take its time.
func (p *process) askIdle() {
	w, f := p.w, p.fetch
	f.asking = true
	if w.hurt(plan.TroubleStop) {
		p.soon(p.stop)
	}
	p.later(w.choices.Wait(2*time.Second), func() { p.saysIdle(f) })
}

// saysIdle is the source's answer.
func (p *process) saysIdle(f *fetching) {
	if p.fetch != f || !f.asking {
		return
	}
	f.asking = false
	p.soon(func() { p.fetched(machine.Fetched{More: p.w.source.HasMore(p)}) })
}

// asked is what the checker knows of the last Fetch and of what was said to it.
type asked struct {
	// canceled and ends are what was said of the Fetch under way: it was
	// cancelled, and because the run would end.
	canceled, ends bool
	// empty: the source brought nothing, has no more, and had to say so, at that
	// moment.
	empty bool
	at    time.Duration
	// more is when the source had more, with ever.
	more time.Duration
	ever bool
}

// cancel is called when the machine cancels a Fetch.
func (c *checker) cancel(a machine.CancelFetch) {
	if !c.fetching {
		c.broke("protocol", "%s without a Fetch under way", trace.Action(a))
		return
	}
	s := &c.asked
	if a.Idle {
		c.arose("trap T95")
		if s.canceled || c.stopping {
			c.broke("protocol", "%s of one that is cancelled already", trace.Action(a))
		}
		if s.ever && c.w.now-s.more < c.p.config.IdleExit {
			c.broke("trap T95", "the source is asked for more %v after it had more", c.w.now-s.more)
		}
	}
	s.canceled, s.ends = true, a.Idle
}

// answered is called before the machine hears of a Fetch's answer.
func (c *checker) answered(e machine.Fetched) {
	s := &c.asked
	s.empty = len(e.Items) == 0 && !e.More && !e.Failed && !e.Unanswered && s.ends
	s.at = c.w.now
	if e.More {
		s.more, s.ever = c.w.now, true
		c.claims.news++ // that may be in the inbox
		c.w.coverage.Add("fault", "source has more when a run would end")
	}
	if len(e.Items) == 0 && s.canceled && !s.ends && !c.stopping && c.p.config.IdleExit > 0 {
		c.w.coverage.Add("fault", "fetch of a run that may end is cancelled for another reason")
	}
	s.canceled, s.ends = false, false
}

// checkAsking checks that a stop ends the question whether the source has more:
// nobody waits for the answer any more (case 10).
func (c *checker) checkAsking() {
	if !c.over && c.stopping && c.fetching && c.asked.ends {
		c.broke("case 10", "the machine stops, and the source is still asked whether it has more")
	}
}

// idle checks that a run ends for the source's end, or for what the source said
// when it was asked.
func (c *checker) idle() {
	messages, bytes := c.unsettled()
	conf := c.p.config
	switch {
	case c.sourceEnded:
	case (messages >= conf.MaxMessages || bytes >= conf.MaxBytes) && conf.IdleExit > 0: // nothing is fetched
	case conf.IdleExit == 0 || c.p.time() < conf.IdleExit:
		c.broke("protocol", "it is idle after %v, and may be after %v", c.p.time(), conf.IdleExit)
	case !c.asked.empty:
		c.broke("trap T95", "it ends idle, and nobody has asked whether the source has more")
	case c.w.now-c.asked.at > 100*time.Millisecond:
		c.broke("trap T95", "it ends idle on what the source said %v ago", c.w.now-c.asked.at)
	}
}
