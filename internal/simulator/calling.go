package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// outside reports whether a flight has no transaction: that of a claim whose handler calls
// out.
func (f *flight) outside() bool { return f.p.w.plan.calls && f.claim() != nil }

// claim is that of a flight's first entry, nil if it was delivered.
func (f *flight) claim() *claim { return handOf(f.of.Entries[0].Item).claim }

// beginOutside is the begin of a flight that has no transaction: the start of its call is
// committed, or its claim looked at.
func (f *flight) beginOutside() {
	w, c := f.p.w, f.claim()
	f.startedAt = w.now
	f.tx = &transaction{open: true, by: f.p, committing: true}
	v := f.known[0]
	if v.Kind == 0 {
		calls := f.of.Entries[0].As == machine.AsApplied
		if calls {
			if c.calls.Outcome() == store.CallUnknown {
				w.coverage.add("fault", "a call again after one of unknown outcome under the same claim")
			}
			c.calls.Starting()
		}
		lost := w.hurt(troubleClaim)
		v.Kind = store.ClaimLost
		if c.row.stands(c.token()) && (!lost || w.choices.flip()) {
			v.Kind = store.Fresh
			if calls {
				f.started = c.row.startCall(c.token(), w)
				if !lost {
					c.ends = max(c.ends, w.now+w.plan.lease)
				}
			}
			c.row.leases(w.at(), w.plan.lease)
		}
		if lost {
			w.fault("answer of a start lost", "f%d", f.of.Number)
			f.fail(store.ClassDown)
			return
		}
	}
	f.verdicts = []store.Verdict{v}
	if f.p.diesAt(faults.AfterMark) {
		return
	}
	f.mayFreeze()
	f.p.soon(func() {
		f.phase = begun
		f.p.feed(machine.Marked{Flight: f.of, Verdicts: slices.Clone(f.verdicts)})
	})
}

// mayFreeze freezes the process between two steps of a call.
func (f *flight) mayFreeze() {
	if w := f.p.w; w.hurt(troubleFreeze) && w.choices.chance(4) {
		f.p.freeze()
	}
}

// keep extends the lease of a claim under which a call is made. One that is over as far as
// the process knows is lost to it, although nobody may have taken it.
func (f *flight) keep(c *claim) {
	w := f.p.w
	lost := c.deaf > 0
	if lost {
		c.deaf--
	} else if lost = w.hurt(troubleClaim); lost {
		c.deaf = w.choices.below(6)
	}
	switch {
	case c.ends < w.now:
		f.lost = true
	case lost && !w.choices.flip():
		w.coverage.add("fault", "a lease is not extended")
	case !c.row.stands(c.token()):
		f.lost = true
	default:
		c.row.leases(w.at(), w.plan.lease)
		if !lost {
			c.ends = w.now + w.plan.lease
		}
		w.coverage.add("fault", "lease extended")
	}
}

// startCall commits the start of a call.
func (r *row) startCall(token uint64, w *world) store.CallStarted {
	if r.starts == nil {
		r.starts = map[uint64]bool{}
	}
	r.starts[token] = true
	return r.calls.Start(store.Token(token), w.clock())
}

// callOut runs the handler of a flight that has no transaction.
func (f *flight) callOut() {
	w, entry := f.p.w, f.call.Fresh[0]
	if f.stop {
		f.ranTo(nil)
		return
	}
	m := f.message(entry)
	f.p.check.handling(f, entry)
	step := f.claim().calls.Next(f.started, w.plan.rule(), w.now-f.startedAt, f.claim().ends-w.now)
	w.checkStep(f, step)
	switch step {
	case calls.Leave:
		f.p.soon(f.leaveCall)
	case calls.Nothing:
		w.coverage.add("fault", "a call is not made again whose end is not recorded")
		f.p.soon(f.charged)
	case calls.GiveUp:
		m.doubt()
		f.p.soon(func() {
			f.ranTo(&machine.Failure{Class: store.ClassRetry, Decision: semel.DecidePark, Reason: semel.ReasonOutcomeUnknown, Free: true, Err: errHandler})
		})
	case calls.Ask:
		m.doubt()
		f.p.later(w.choices.wait(f.pace()), func() { f.asked(m) })
	default:
		f.callProvider(m)
	}
}

// leaveCall is a handler that calls nobody, since the lease is over as far as is known.
func (f *flight) leaveCall() {
	f.p.w.coverage.add("fault", "a call is left whose lease may be over")
	f.ranTo(&machine.Failure{Class: store.ClassClaimLost, Err: store.ErrClaimLost})
}

// doubt: the message may be charged with what nobody knows.
func (m *message) doubt() { m.harmless, m.doubted = false, true }

// asked is the provider's answer to what became of earlier calls.
func (f *flight) asked(m *message) {
	w := f.p.w
	switch {
	case w.hurt(troubleUnknown):
		w.fault("the provider cannot tell", "%s", m.name())
		m.failed++
		f.ranTo(&machine.Failure{Class: store.ClassRetry, Decision: semel.DecideRetry, Reason: semel.ReasonOutcomeUnknown, Err: errHandler})
	case w.provider.charged[m.id] > 0:
		w.coverage.add("fault", "the provider says that it happened")
		f.claim().calls.Happened()
		f.charged()
	default:
		w.coverage.add("fault", "the provider says that it did not happen")
		w.deny(m)
		if f.claim().calls.DidNotHappen(f.claim().ends-w.now) == calls.Leave {
			f.leaveCall()
			return
		}
		f.callProvider(m)
	}
}

// charged is a handler that has come to its end.
func (f *flight) charged() {
	entry := f.call.Fresh[0]
	f.tx.effects = append(f.tx.effects, effect{entry: entry, message: f.message(entry)})
	f.done = 1
	f.ranTo(nil)
}

// callProvider makes the call. Whoever made it, it may arrive.
func (f *flight) callProvider(m *message) {
	w, c := f.p.w, f.claim()
	it := f.of.Entries[0].Item
	out := &call{f: f, claim: c, token: c.token(), message: m, key: callKey(it, m)}
	c.calls.Making()
	w.called(out)
	f.mayFreeze()
	if m.conduct == sticks && m.times > 0 {
		m.fail()
		m.doubt()
		if w.choices.flip() {
			w.after(w.choices.wait(w.plan.timeout), func() { w.arrive(out) })
		}
		f.stick(func() { f.returned(out, true, nil, f.blame(m)) })
		return
	}
	if w.hurt(troubleUnknown) {
		f.callInVain(out)
		return
	}
	arrival := w.choices.wait(w.plan.timeout * 3 / 4)
	w.after(arrival, func() { w.arrive(out) })
	f.p.later(arrival+time.Microsecond, func() {
		if out.refused {
			f.returned(out, false, &semel.HandlerError{Decision: out.failure.Decision, Reason: out.failure.Reason, Err: errHandler}, &out.failure)
			return
		}
		f.returned(out, false, nil, nil)
	})
	if w.hurt(troubleCrash) {
		f.p.later(w.choices.wait(arrival), func() { f.p.die("crash", "while a call is under way") })
	}
}

// callInVain is a call of which nobody hears, whether it arrives or not.
func (f *flight) callInVain(out *call) {
	w := f.p.w
	arrives := w.choices.flip()
	w.fault("answer of a call lost", "f%d, it arrives: %v", f.of.Number, arrives)
	out.message.doubt()
	if arrives {
		w.after(w.choices.wait(w.plan.timeout), func() { w.arrive(out) })
	}
	failure := machine.Failure{Class: store.ClassRetry, Err: errHandler}
	err := errHandler
	if w.choices.flip() {
		failure.Decision = semel.DecideUnknown
		err = semel.Unknown(errHandler)
	}
	f.p.later(w.choices.wait(w.plan.timeout), func() {
		out.message.failed++
		f.returned(out, false, err, &failure)
	})
}

// returned is a handler that returns from its call.
func (f *flight) returned(out *call, late bool, err error, failure *machine.Failure) {
	w := f.p.w
	w.provider.underWay = slices.DeleteFunc(w.provider.underWay, func(c *call) bool { return c == out })
	switch {
	case f.abort && w.choices.flip():
		late, failure = true, &machine.Failure{Class: store.ClassContended, Err: errHandler}
	case f.lost && w.choices.often(4):
		w.coverage.add("fault", "call cancelled for a lost claim")
		late, failure = true, &machine.Failure{Class: store.ClassClaimLost, Err: store.ErrClaimLost}
	}
	out.claim.calls.Made(late, err)
	if failure != nil {
		if late {
			out.message.doubt()
		}
		f.ranTo(failure)
		return
	}
	f.charged()
}

// decideOutside draws what becomes of the end of a claim without a transaction.
func (f *flight) decideOutside(a machine.Commit) {
	w := f.p.w
	switch {
	case len(a.Rows) == 0:
		w.end(f.tx)
		f.answer(machine.Ended{Outcome: store.Committed, Culprit: -1})
	case w.store.down:
		w.end(f.tx)
		f.answer(machine.Ended{Outcome: store.CommitUnknown, Culprit: -1})
	case f.claimsLost(a):
		w.fault("end of a call refused because of its claim", "f%d", f.of.Number)
		w.end(f.tx)
		f.answer(machine.Ended{Outcome: store.NotCommitted, Class: store.ClassClaimLost, Culprit: -1})
	case w.hurt(troubleUnknown) || w.hurt(troubleCommit):
		f.unknown(a)
	default:
		f.apply(a)
		if !f.p.over && f.p.diesAt(faults.CommitReplyLost) {
			return
		}
		f.answer(machine.Ended{Outcome: store.Committed, Culprit: -1, Freed: f.freed})
	}
}

// resolve lets a person say what became of calls of which nobody knows.
func (w *world) resolve(r *row) {
	s, m := w.store, r.message
	r.started, r.calls.Token = 0, 0
	if w.provider.charged[m.id] > 0 {
		w.fault("a person says that it was done", "%s", r.key.id)
		r.as, r.reason, r.changed, r.by = machine.AsApplied, "", w.now, nil
		r.calls.Finished = r.calls.Started
		s.remember(r.key.id, store.Applied, marker{print: r.print, at: w.now})
		s.effects[m.id]++
		s.advance(r, nil, w.at())
		w.wrapUp()
		return
	}
	w.fault("a person says that it was not done", "%s", r.key.id)
	w.deny(m)
	r.as, r.reason, r.by = machine.AsWaiting, "", nil
	r.dates(w.at(), 0)
	r.calls = calls.Ledger{}
	s.remember(r.key.id, store.Waiting, marker{print: r.print, at: w.now})
}
