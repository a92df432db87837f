package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/store"
)

// provider is the external system that handlers call. For each key that it remembers, provider charges only
// once.
type provider struct {
	// known maps each idempotency key that the provider remembers to the time of the key's first charge.
	known map[string]time.Duration
	// The checker uses charges, denials, firstKeys and callCounts. charges has the number of charges of each identity.
	// denials has the number of reports, by the provider or a person, that an identity was not charged.
	charges, denials map[string]int
	// firstKeys has the first key that was used for each identity. callCounts has the number of calls for each
	// identity.
	firstKeys  map[string]string
	callCounts map[string]int
	// underWay contains the calls whose handlers have not returned.
	underWay []*call
}

func newProvider() *provider {
	return &provider{known: map[string]time.Duration{}, charges: map[string]int{}, denials: map[string]int{}, firstKeys: map[string]string{}, callCounts: map[string]int{}}
}

// call is a call of a handler to the provider.
type call struct {
	f       *flight
	claim   *model.Claim
	token   uint64
	message *model.Message
	key     string
	// The field refused is true if the provider has not charged for the call and never will. If refused is true, the
	// field failure is the result of the handler.
	refused bool
	failure machine.Failure
}

// outside reports whether a batch has no transaction, because it has a claim whose handler makes a call.
func (f *flight) outside() bool { return f.p.w.Plan.Calls && f.claim() != nil }

// claim returns the claim of the batch's first entry, or nil if that entry is a delivery of the source.
func (f *flight) claim() *model.Claim { return handOf(f.of.Entries[0].Item).claim }

// beginOutside begins a batch without a transaction. The store either commits the start of the call, or checks
// the claim.
func (f *flight) beginOutside() {
	w, c := f.p.w, f.claim()
	f.startedAt = w.now
	f.tx = &model.Transaction{Open: true, By: f.p, Committing: true}
	v := f.claimVerdicts[0]
	if v.Kind == 0 {
		calls := f.of.Entries[0].As == machine.AsApplied
		if calls {
			if c.Calls.Outcome() == store.CallUnknown {
				w.coverage.Add("fault", "a call again after one of unknown outcome under the same claim")
			}
			c.Calls.Starting()
		}
		lost := w.hurt(plan.TroubleClaim)
		v.Kind = store.ClaimLost
		if c.Row.Stands(c.Token()) && (!lost || w.choices.Flip()) {
			v.Kind = store.Fresh
			if calls {
				f.callStart = c.Row.StartCall(c.Token(), w.storeClock())
				if !lost {
					c.Ends = max(c.Ends, w.now+w.Plan.Lease)
				}
			}
			c.Row.Leases(w.storeTime(), w.Plan.Lease)
		}
		if lost {
			w.recordFault("answer of a start lost", "f%d", f.of.Number)
			f.fail(store.ClassDown)
			return
		}
	}
	f.verdicts = []store.Verdict{v}
	if f.p.diesAt(faults.AfterMark) {
		return
	}
	f.mayFreeze()
	f.p.scheduleSoon(func() {
		f.phase = begun
		f.p.feed(machine.Marked{Flight: f.of, Verdicts: slices.Clone(f.verdicts)})
	})
}

// mayFreeze draws whether the process freezes between two steps of a call.
func (f *flight) mayFreeze() {
	if w := f.p.w; w.hurt(plan.TroubleFreeze) && w.choices.Chance(4) {
		f.p.freeze()
	}
}

// extendLease extends the lease of a claim under which a call is made. If the lease has ended by the clock of the
// process, the process gives the claim up, even if no other process has claimed the row.
func (f *flight) extendLease(c *model.Claim) {
	w := f.p.w
	lost := c.Deaf > 0
	if lost {
		c.Deaf--
	} else if lost = w.hurt(plan.TroubleClaim); lost {
		c.Deaf = w.choices.Below(6)
	}
	switch {
	case c.Ends < w.now:
		f.lost = true
	case lost && !w.choices.Flip():
		w.coverage.Add("fault", "a lease is not extended")
	case !c.Row.Stands(c.Token()):
		f.lost = true
	default:
		c.Row.Leases(w.storeTime(), w.Plan.Lease)
		if !lost {
			c.Ends = w.now + w.Plan.Lease
		}
		w.coverage.Add("fault", "lease extended")
	}
}

// callOut runs the handler of a batch without a transaction.
func (f *flight) callOut() {
	w, entry := f.p.w, f.call.Fresh[0]
	if f.stop {
		f.ranTo(nil)
		return
	}
	m := f.message(entry)
	f.p.check.handling(f, entry)
	step := f.claim().Calls.Next(f.callStart, w.Plan.Rule(), w.now-f.startedAt, f.claim().Ends-w.now)
	w.checkStep(f, step)
	switch step {
	case calls.Leave:
		f.p.scheduleSoon(f.leaveCall)
	case calls.Nothing:
		w.coverage.Add("fault", "a call is not made again whose end is not recorded")
		f.p.scheduleSoon(f.endCharged)
	case calls.GiveUp:
		m.Doubt()
		f.p.scheduleSoon(func() {
			f.ranTo(&machine.Failure{Class: store.ClassRetry, Decision: semel.DecidePark, Reason: semel.ReasonOutcomeUnknown, Free: true, Err: errHandler})
		})
	case calls.Ask:
		m.Doubt()
		f.p.schedule(w.choices.Wait(f.pace()), func() { f.handleLookup(m) })
	default:
		f.callProvider(m)
	}
}

// leaveCall ends a handler without a call, because the lease has ended by the clock of the process.
func (f *flight) leaveCall() {
	f.p.w.coverage.Add("fault", "a call is left whose lease may be over")
	f.ranTo(&machine.Failure{Class: store.ClassClaimLost, Err: store.ErrClaimLost})
}

// handleLookup handles the provider's answer to the question whether earlier calls were charged.
func (f *flight) handleLookup(m *model.Message) {
	w := f.p.w
	switch {
	case w.hurt(plan.TroubleUnknown):
		w.recordFault("the provider cannot tell", "%s", m.Name())
		m.Failed++
		f.ranTo(&machine.Failure{Class: store.ClassRetry, Decision: semel.DecideRetry, Reason: semel.ReasonOutcomeUnknown, Err: errHandler})
	case w.provider.charges[m.ID] > 0:
		w.coverage.Add("fault", "the provider says that it happened")
		f.claim().Calls.Happened()
		f.endCharged()
	default:
		w.coverage.Add("fault", "the provider says that it did not happen")
		w.deny(m)
		if f.claim().Calls.DidNotHappen(f.claim().Ends-w.now) == calls.Leave {
			f.leaveCall()
			return
		}
		f.callProvider(m)
	}
}

// endCharged handles the end of a handler whose call was charged.
func (f *flight) endCharged() {
	entry := f.call.Fresh[0]
	f.tx.Effects = append(f.tx.Effects, model.Effect{Entry: entry, Message: f.message(entry)})
	f.done = 1
	f.ranTo(nil)
}

// callProvider makes the call. The call may reach the provider even if the process dies.
func (f *flight) callProvider(m *model.Message) {
	w, c := f.p.w, f.claim()
	it := f.of.Entries[0].Item
	out := &call{f: f, claim: c, token: c.Token(), message: m, key: callKey(it, m)}
	c.Calls.Making()
	w.checkCall(out)
	f.mayFreeze()
	if m.Conduct == model.Sticks && m.Times > 0 {
		m.Fail()
		m.Doubt()
		if w.choices.Flip() {
			w.schedule(w.choices.Wait(w.Plan.Timeout), func() { w.arrive(out) })
		}
		f.stick(func() { f.handleReturn(out, true, nil, f.blame(m)) })
		return
	}
	if w.hurt(plan.TroubleUnknown) {
		f.callInVain(out)
		return
	}
	arrival := w.choices.Wait(w.Plan.Timeout * 3 / 4)
	w.schedule(arrival, func() { w.arrive(out) })
	f.p.schedule(arrival+time.Microsecond, func() {
		if out.refused {
			f.handleReturn(out, false, &semel.HandlerError{Decision: out.failure.Decision, Reason: out.failure.Reason, Err: errHandler}, &out.failure)
			return
		}
		f.handleReturn(out, false, nil, nil)
	})
	if w.hurt(plan.TroubleCrash) {
		f.p.schedule(w.choices.Wait(arrival), func() { f.p.die("crash", "while a call is under way") })
	}
}

// callInVain makes a call that gets no response. The call without a response may or may not reach the provider.
func (f *flight) callInVain(out *call) {
	w := f.p.w
	arrives := w.choices.Flip()
	w.recordFault("answer of a call lost", "f%d, it arrives: %v", f.of.Number, arrives)
	out.message.Doubt()
	if arrives {
		w.schedule(w.choices.Wait(w.Plan.Timeout), func() { w.arrive(out) })
	}
	failure := machine.Failure{Class: store.ClassRetry, Err: errHandler}
	err := errHandler
	if w.choices.Flip() {
		failure.Decision = semel.DecideUnknown
		err = semel.Unknown(errHandler)
	}
	f.p.schedule(w.choices.Wait(w.Plan.Timeout), func() {
		out.message.Failed++
		f.handleReturn(out, false, err, &failure)
	})
}

// remembers reports whether the provider still remembers a key.
func (w *world) remembers(key string) bool {
	first, known := w.provider.known[key]
	switch w.Plan.Window {
	case calls.Always:
		return known
	case calls.Never:
		return false
	}
	return known && w.now-first < w.Plan.Window
}

// arrive handles a call that reaches the provider. The calling process may have died since it made the call.
func (w *world) arrive(c *call) {
	m, p := c.message, w.provider
	if w.hurt(plan.TroubleHandler) { // for example because it is overloaded
		w.recordFault("the provider refuses before it looks at the key", "%s", m.Name())
		m.Doubt()
		m.Failed++
		c.refused, c.failure = true, machine.Failure{Class: store.ClassRetry, Decision: semel.DecideRetry, Err: errHandler}
		return
	}
	if w.remembers(c.key) { // the response is the same as the first time
		w.coverage.Add("fault", "a key that was charged for is used again")
		return
	}
	if m.Times > 0 {
		m.Fail()
		c.refused, c.failure = true, *c.f.blame(m)
		return
	}
	p.known[c.key] = w.now
	p.charges[m.ID]++
	w.logLine("charged: %s", m.Name())
	w.checkCharge(m)
}

// deny records a report that a message was not charged.
func (w *world) deny(m *model.Message) { w.provider.denials[m.ID]++ }

// handleReturn handles the return of a handler from its call.
func (f *flight) handleReturn(out *call, late bool, err error, failure *machine.Failure) {
	w := f.p.w
	w.provider.underWay = slices.DeleteFunc(w.provider.underWay, func(c *call) bool { return c == out })
	switch {
	case f.abort && w.choices.Flip():
		late, failure = true, &machine.Failure{Class: store.ClassContended, Err: errHandler}
	case f.lost && w.choices.Often(4):
		w.coverage.Add("fault", "call cancelled for a lost claim")
		late, failure = true, &machine.Failure{Class: store.ClassClaimLost, Err: store.ErrClaimLost}
	}
	out.claim.Calls.Made(late, err)
	if failure != nil {
		if late {
			out.message.Doubt()
		}
		f.ranTo(failure)
		return
	}
	f.endCharged()
}

// decideOutside draws the result of ending a claim without a transaction.
func (f *flight) decideOutside(a machine.Commit) {
	w := f.p.w
	switch {
	case len(a.Rows) == 0:
		w.end(f.tx)
		f.sendEnded(machine.Ended{Outcome: store.Committed, Culprit: -1})
	case w.store.Down:
		w.end(f.tx)
		f.sendEnded(machine.Ended{Outcome: store.CommitUnknown, Culprit: -1})
	case f.claimsLost(a):
		w.recordFault("end of a call refused because of its claim", "f%d", f.of.Number)
		w.end(f.tx)
		f.sendEnded(machine.Ended{Outcome: store.NotCommitted, Class: store.ClassClaimLost, Culprit: -1})
	case w.hurt(plan.TroubleUnknown) || w.hurt(plan.TroubleCommit):
		f.unknown(a)
	default:
		f.apply(a)
		if !f.p.over && f.p.diesAt(faults.CommitReplyLost) {
			return
		}
		f.sendEnded(machine.Ended{Outcome: store.Committed, Culprit: -1, Freed: f.unblocked})
	}
}
