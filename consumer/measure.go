package consumer

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/store"
)

// lap reads the clock where somebody measures. What it returns is what the present part of
// the flight took; the next one begins. So a flight costs one reading a part.
func (p *pilot[Tx]) lap(f *flight[Tx]) time.Duration {
	if !p.engine.reporter.Measures() {
		return 0
	}
	took := time.Since(f.began) - f.spent
	f.spent += took
	return took
}

// measured passes the figures of a flight that is over to the meters and ends its spans. culprit
// is the entry that made the flight roll back, store.NoCulprit if there is none.
func (p *pilot[Tx]) measured(f *flight[Tx], end measure.End, culprit int) {
	f.figures.Consumer, f.figures.Messages, f.figures.End = p.engine.config.Name, len(f.Entries), end
	p.engine.reporter.Measure(f.figures)
	p.traced(f, culprit)
}

// batchEnd is how a batch ended, for who measures.
func batchEnd(o store.CommitOutcome) measure.End {
	switch o {
	case store.Committed:
		return measure.Committed
	case store.CommitUnknown:
		return measure.Unknown
	}
	return measure.RolledBack
}

// Load returns what the consumer has in hand; nothing before it runs and when its run is
// over. It may be called at any time and asks nobody.
func (c *Consumer[Tx]) Load() measure.Load {
	e := c.running()
	if e == nil {
		return measure.Load{}
	}
	e.mutex.Lock()
	l, over := e.load, e.over
	e.mutex.Unlock()
	if over {
		return measure.Load{}
	}
	out := measure.Load{Messages: l.Messages, Bytes: l.Bytes, Queued: l.Queued, Flying: l.Flying, Held: l.Held, Riding: l.Riding, Settling: l.Settling,
		Lanes: l.Lanes, Paused: l.Paused, Workers: l.Workers, Stuck: l.Stuck, Serial: l.Serial}
	if l.Messages > 0 {
		out.Oldest = time.Since(e.began) - l.Since
	}
	return out
}

// hangsAfter is how long a step of the engine may take, which waits for nothing.
const hangsAfter = time.Minute

// Alive reports whether the consumer works, or pauses by decision: its own, since its store
// or its source is down or its run is over, or a person's. If not, it says why: the
// handlers of all workers go on after their time-outs, or the engine itself stands still. A
// restart of the process may mend that, and nothing else that Ready tells. It may be
// called at any time and asks nobody.
func (c *Consumer[Tx]) Alive() (bool, string) {
	e := c.running()
	if e == nil {
		return true, ""
	}
	e.mutex.Lock()
	l, over := e.load, e.over
	e.mutex.Unlock()
	step := machine.Time(e.stepping.Load())
	switch {
	case over:
		return true, ""
	case step != 0 && time.Since(e.began)-step > hangsAfter:
		return false, fmt.Sprintf("the engine has stood still for %s", legible.Span((time.Since(e.began) - step).Round(time.Second)))
	case l.Workers > 0 && l.Stuck == l.Workers:
		return false, fmt.Sprintf("the handlers of all %d workers go on after their timeouts", l.Workers)
	}
	return true, ""
}

// StoreDown says since when the store, or that of the keys, has not worked, and why; the zero
// time while it works, and before it was asked. Whoever decides on more than Alive does may
// look at it. It may be called at any time and asks nobody.
func (c *Consumer[Tx]) StoreDown() (since time.Time, why string) { return c.reporter.StoreDown() }

// note keeps what the machine says of itself after a step that began at now, for who asks
// from outside of the loop.
func (e *engine[Tx]) note(now machine.Time) {
	e.stepping.Store(int64(now))
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.counts, e.load = e.machine.Counts(), e.machine.Load()
}

// noteOver keeps that the loop has ended.
func (e *engine[Tx]) noteOver() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.over = true
}
