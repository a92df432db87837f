package engine

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/store"
)

// measurePart returns the duration of the current part of the batch and begins the next part. measurePart reads the
// clock once, and only if a meter is set.
func (p *pilot[Tx]) measurePart(f *flight[Tx]) time.Duration {
	if !p.engine.Reporter.Measures() {
		return 0
	}
	took := time.Since(f.began) - f.accountedTime
	f.accountedTime += took
	return took
}

// reportMeasurements passes the figures of an ended batch to the meters and ends its spans. The parameter culprit is
// the entry that made the batch roll back, or store.NoCulprit if there is none.
func (p *pilot[Tx]) reportMeasurements(f *flight[Tx], end measure.End, culprit int) {
	f.durations.Consumer, f.durations.Messages, f.durations.End = p.engine.config.Consumer, len(f.Entries), end
	p.engine.Reporter.Measure(f.durations)
	p.endSpans(f, culprit)
}

// batchEnd returns how a batch ended, for meters.
func batchEnd(o store.CommitOutcome) measure.End {
	switch o {
	case store.Committed:
		return measure.Committed
	case store.CommitUnknown:
		return measure.Unknown
	}
	return measure.RolledBack
}

// recordLoad stores the machine's counts and load after a step that began at now. Callers outside of the loop read
// the stored values.
func (e *Engine[Tx]) recordLoad(now machine.Time) {
	e.stepping.Store(int64(now))
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.counts, e.load = e.machine.Counts(), e.machine.Load()
}

func (e *Engine[Tx]) recordLoopEnd() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.over = true
}

// Load returns the numbers of messages and bytes that the run has in memory. After the run, Load returns the
// zero value.
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

// hangsAfter is the time after which a step of the engine counts as hanging. A step never waits for anything.
const hangsAfter = time.Minute

// Alive reports whether the run works, or is paused by an operator. If the run does not work, Alive also
// returns why.
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
