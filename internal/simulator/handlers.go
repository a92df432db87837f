package simulator

import (
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

var errHandler = errors.New("the handler failed")

// run starts the handlers of a flight.
func (f *flight) run(call machine.Run) {
	f.phase, f.call, f.ranAt = running, call, f.p.w.now
	if f.outside() {
		f.callOut()
		return
	}
	if f.p.w.plan.whole {
		f.runWhole()
		return
	}
	f.next()
}

// next starts the next handler, or ends the run.
func (f *flight) next() {
	w := f.p.w
	spent := f.done > 0 && w.now-f.ranAt >= f.call.Budget
	if f.done == len(f.call.Fresh) || f.stop || spent {
		f.ranTo(nil)
		return
	}
	entry := f.call.Fresh[f.done]
	m := f.message(entry)
	f.p.check.handling(f, entry)
	if m.conduct == sticks && f.acts(entry, m) {
		m.fail()
		f.stick(func() { f.ranTo(f.blame(m)) })
		return
	}
	f.p.later(w.choices.wait(f.pace()), func() { f.handled(entry, m) })
}

// pace is the most that one handler takes.
func (f *flight) pace() time.Duration {
	return min(f.p.w.plan.timeout/2, 8*f.p.config.BatchTime)
}

// stick lets a handler go on after its time: it ends some time after it is
// killed, or because it was told to.
func (f *flight) stick(end func()) {
	w := f.p.w
	w.fault("handler sticks", "f%d", f.of.Number)
	f.stuck = true
	f.p.later(w.plan.timeout, func() {
		f.p.feed(machine.Stuck{Flight: f.of})
		if !w.calm && !w.quiet && w.choices.chance(3) {
			w.fault("handler sticks without end", "f%d", f.of.Number)
			f.p.check.sticks(f.of)
			return
		}
		f.p.later(w.choices.wait(3*time.Second), func() {
			f.stuck = false
			end()
		})
	})
}

// handled is the moment in which a handler returns.
func (f *flight) handled(entry int, m *message) {
	if !f.writes(entry, m, f.stepOf(entry)) {
		return
	}
	switch {
	case f.abort && f.p.w.choices.flip():
		f.ranTo(&machine.Failure{Class: store.ClassContended, Err: errHandler})
	case f.lost && f.p.w.choices.flip():
		f.p.w.coverage.add("fault", "handler cancelled for a lost claim")
		f.ranTo(&machine.Failure{Class: store.ClassClaimLost, Err: store.ErrClaimLost})
	case f.tx.cut || f.p.w.store.down:
		f.ranTo(&machine.Failure{Class: store.ClassDown, Err: errHandler})
	case f.tx.broken:
		f.ranTo(&machine.Failure{Class: store.ClassAborted, Err: errHandler})
	case f.acts(entry, m) && m.conduct != failsAtCommit && m.conduct != sticks && !m.failsLate():
		m.fail()
		f.misbehave(entry, m)
	default:
		f.takesEffect(entry, m)
		f.next()
	}
}

// misbehave is a handler that does not simply succeed.
func (f *flight) misbehave(entry int, m *message) {
	if m.conduct != breaksQuietly {
		f.ranTo(f.blame(m))
		return
	}
	f.tx.broken = true
	if f.p.w.plan.broken {
		f.ranTo(&machine.Failure{Class: store.ClassRetry, Decision: semel.DecideRetry, Err: errHandler})
		return
	}
	f.done++
	f.next()
}

// blame returns the failure that a message's handler reports.
func (f *flight) blame(m *message) *machine.Failure {
	conf := f.p.config
	a := machine.Failure{Class: store.ClassPermanent, Err: errHandler}
	switch m.conduct {
	case failsForGood:
		a.Decision, a.Reason = semel.DecidePermanent, "permanent failure"
	case unknownType:
		a.Decision, a.Reason, a.Free = semel.DecidePermanent, "unknown_type", true
	case asksPark:
		a.Decision, a.Reason = semel.DecidePark, "look at it"
	case asksDiscard:
		a.Decision, a.Reason = semel.DecideDiscard, "not wanted"
	case saysDuplicate:
		a.Decision = semel.DecideDuplicate
	case findsUnmet:
		a.Decision, a.Reason = semel.DecidePreconditionFailed, "condition unmet"
	case meetsContention, alwaysContends:
		a.Class, a.Outside = store.ClassContended, m.outside()
	case meetsDown, alwaysDown:
		a.Class, a.Outside = store.ClassDown, m.outside()
	default:
		a.Class, a.Decision = store.ClassRetry, semel.DecideRetry
	}
	switch m.conduct {
	case failsWithWait:
		a.After = conf.MaxInMemoryWait / 4
	case asksTooLong:
		a.After = conf.MaxInMemoryWait + time.Second
	}
	return &a
}

// ranTo answers Run.
func (f *flight) ranTo(failure *machine.Failure) {
	e := machine.Ran{Flight: f.of, Done: f.done, Whole: f.p.w.plan.whole && failure != nil, Stepped: f.stepped()}
	if failure != nil {
		e.Failed, e.Failure = true, *failure
		f.failed, f.failure = true, *failure
		f.tx.dirty = true
	}
	if f.p.diesAt(faults.AfterEffect) {
		return
	}
	f.p.soon(func() {
		f.phase = ran
		f.p.feed(e)
	})
}

// runWhole is a handler of the whole batch: who is to blame it cannot say.
func (f *flight) runWhole() {
	f.p.later(f.p.w.choices.wait(f.pace()), func() {
		for _, entry := range f.call.Fresh {
			m := f.message(entry)
			if m.times == 0 || m.conduct == failsAtCommit || m.failsLate() {
				continue
			}
			m.fail()
			f.wholeFailed(m)
			return
		}
		f.wholeSucceeded()
	})
}

func (f *flight) wholeFailed(m *message) {
	f.ranTo(f.blame(m))
}

func (f *flight) wholeSucceeded() {
	switch {
	case f.stop && f.p.w.choices.flip():
		f.ranTo(nil)
	case f.tx.cut || f.p.w.store.down:
		f.ranTo(&machine.Failure{Class: store.ClassDown, Err: errHandler})
	default:
		for _, entry := range f.call.Fresh {
			if !f.writes(entry, f.message(entry), "") {
				return
			}
		}
		for _, entry := range f.call.Fresh {
			f.tx.effects = append(f.tx.effects, effect{entry: entry, message: f.message(entry)})
		}
		f.done = len(f.call.Fresh)
		f.ranTo(nil)
	}
}

// stopRun lets the handler that runs end, and starts no other.
func (f *flight) stopRun(abort bool) { f.stop, f.abort = true, f.abort || abort }

// fail counts one failure.
func (m *message) fail() {
	m.times--
	m.failed++
}
