package engine

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
	if !p.engine.Reporter.Measures() {
		return 0
	}
	took := time.Since(f.began) - f.spent
	f.spent += took
	return took
}

// measured passes the figures of a flight that is over to the meters and ends its spans. culprit
// is the entry that made the flight roll back, store.NoCulprit if there is none.
func (p *pilot[Tx]) measured(f *flight[Tx], end measure.End, culprit int) {
	f.figures.Consumer, f.figures.Messages, f.figures.End = p.engine.config.Consumer, len(f.Entries), end
	p.engine.Reporter.Measure(f.figures)
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

// note keeps what the machine says of itself after a step that began at now, for who asks
// from outside of the loop.
func (e *Engine[Tx]) note(now machine.Time) {
	e.stepping.Store(int64(now))
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.counts, e.load = e.machine.Counts(), e.machine.Load()
}

// noteOver keeps that the loop has ended.
func (e *Engine[Tx]) noteOver() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.over = true
}

// Load returns what the run has in hand, nothing when it is over.
func (e *Engine[Tx]) Load() measure.Load {
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

// Alive reports whether the run works, or pauses by decision, and if not, why.
func (e *Engine[Tx]) Alive() (bool, string) {
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
