package simulator

import (
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/steps"
	"github.com/semel-go/semel/store"
)

var errHandler = errors.New("the handler failed")

// run starts the handlers of a batch.
func (f *flight) run(call machine.Run) {
	f.phase, f.call, f.ranAt = running, call, f.p.w.now
	if f.outside() {
		f.callOut()
		return
	}
	if f.p.w.Plan.Whole {
		f.runWhole()
		return
	}
	f.next()
}

// next starts the next handler, or ends the run of the batch.
func (f *flight) next() {
	w := f.p.w
	spent := f.done > 0 && w.now-f.ranAt >= f.call.Budget
	if f.done == len(f.call.Fresh) || f.stop || spent {
		f.ranTo(nil)
		return
	}
	entry := f.call.Fresh[f.done]
	m := f.message(entry)
	if f.done > 0 && f.canaryDue(entry) {
		f.ranTo(nil) // a canary runs first in its batch
		return
	}
	f.p.check.handling(f, entry)
	if m.Conduct == model.Sticks && f.acts(entry, m) {
		m.Fail()
		f.stick(func() { f.ranTo(f.blame(m)) })
		return
	}
	f.p.schedule(w.choices.Wait(f.pace()), func() { f.handled(entry, m) })
}

// pace returns the longest duration of one handler.
func (f *flight) pace() time.Duration {
	return min(f.p.w.Plan.Timeout/2, 8*f.p.config.BatchTime)
}

// stick lets a handler exceed its timeout. The handler ends some time after it was killed or cancelled.
func (f *flight) stick(end func()) {
	w := f.p.w
	w.recordFault("handler sticks", "f%d", f.of.Number)
	f.stuck = true
	f.p.schedule(w.Plan.Timeout, func() {
		f.p.feed(machine.Stuck{Flight: f.of})
		if !w.calm && !w.quiet && w.choices.Chance(3) {
			w.recordFault("handler sticks without end", "f%d", f.of.Number)
			f.p.check.sticks(f.of)
			return
		}
		f.p.schedule(w.choices.Wait(3*time.Second), func() {
			f.stuck = false
			end()
		})
	})
}

// handled handles the return of a handler.
func (f *flight) handled(entry int, m *model.Message) {
	if !f.writeIntents(entry, m, f.stepOf(entry)) {
		return
	}
	switch {
	case f.abort && f.p.w.choices.Flip():
		f.ranTo(&machine.Failure{Class: store.ClassContended, Err: errHandler})
	case f.lost && f.p.w.choices.Flip():
		f.p.w.coverage.Add("fault", "handler cancelled for a lost claim")
		f.ranTo(&machine.Failure{Class: store.ClassClaimLost, Err: store.ErrClaimLost})
	case f.tx.Cut || f.p.w.store.Down:
		f.ranTo(&machine.Failure{Class: store.ClassDown, Err: errHandler})
	case f.tx.Broken:
		f.ranTo(&machine.Failure{Class: store.ClassAborted, Err: errHandler})
	case f.acts(entry, m) && m.Conduct != model.FailsAtCommit && m.Conduct != model.Sticks && !m.FailsLate():
		m.Fail()
		f.misbehave(entry, m)
	default:
		f.takesEffect(entry, m)
		if !f.stop && f.canaryDue(entry) {
			f.rollBackCanary(entry)
			return
		}
		f.next()
	}
}

// canaryDue reports whether the success of a message's handler is rolled back on purpose. It is rolled back once for
// each delivery.
func (f *flight) canaryDue(entry int) bool {
	return f.p.w.Plan.Canary && f.message(entry).Number%3 == 1 && !handOf(f.of.Entries[entry].Item).rerun
}

// rollBackCanary rolls back the success of a canary. Like the engine, it reports the class of a lost claim.
func (f *flight) rollBackCanary(entry int) {
	handOf(f.of.Entries[entry].Item).rerun = true
	f.p.w.coverage.Add("fault", "canary rerun")
	f.ranTo(&machine.Failure{Class: store.ClassClaimLost, Err: errHandler})
}

// misbehave handles a handler that does not simply succeed.
func (f *flight) misbehave(entry int, m *model.Message) {
	if m.Conduct != model.BreaksQuietly {
		f.ranTo(f.blame(m))
		return
	}
	f.tx.Broken = true
	if f.p.w.Plan.Broken {
		f.ranTo(&machine.Failure{Class: store.ClassRetry, Decision: semel.DecideRetry, Err: errHandler})
		return
	}
	f.done++
	f.next()
}

// blame returns the failure that the handler of a message reports.
func (f *flight) blame(m *model.Message) *machine.Failure {
	conf := f.p.config
	a := machine.Failure{Class: store.ClassPermanent, Err: errHandler}
	switch m.Conduct {
	case model.FailsForGood:
		a.Decision, a.Reason = semel.DecidePermanent, "permanent failure"
	case model.UnknownType:
		a.Decision, a.Reason, a.Free = semel.DecidePermanent, "unknown type", true
	case model.AsksPark:
		a.Decision, a.Reason = semel.DecidePark, "look at it"
	case model.AsksDiscard:
		a.Decision, a.Reason = semel.DecideDiscard, "not wanted"
	case model.SaysDuplicate:
		a.Decision = semel.DecideDuplicate
	case model.FindsUnmet:
		a.Decision, a.Reason = semel.DecidePreconditionFailed, "condition unmet"
	case model.MeetsContention, model.AlwaysContends:
		a.Class, a.Outside = store.ClassContended, m.Outside()
	case model.MeetsDown, model.AlwaysDown:
		a.Class, a.Outside = store.ClassDown, m.Outside()
	default:
		a.Class, a.Decision = store.ClassRetry, semel.DecideRetry
	}
	switch m.Conduct {
	case model.FailsWithWait:
		a.After = conf.MaxInMemoryWait / 4
	case model.AsksTooLong:
		a.After = conf.MaxInMemoryWait + time.Second
	}
	return &a
}

// ranTo sends the machine the event Ran, which is the response to the action Run.
func (f *flight) ranTo(failure *machine.Failure) {
	e := machine.Ran{Flight: f.of, Done: f.done, Whole: f.p.w.Plan.Whole && failure != nil, Stepped: f.stepped()}
	if failure != nil {
		e.Failed, e.Failure = true, *failure
		f.failed, f.failure = true, *failure
	}
	if f.p.diesAt(faults.AfterEffect) {
		return
	}
	f.p.scheduleSoon(func() {
		f.phase = ran
		f.p.feed(e)
	})
}

// runWhole runs a handler for the whole batch, which cannot say which message failed.
func (f *flight) runWhole() {
	f.p.schedule(f.p.w.choices.Wait(f.pace()), func() {
		for _, entry := range f.call.Fresh {
			m := f.message(entry)
			if m.Times == 0 || m.Conduct == model.FailsAtCommit || m.FailsLate() {
				continue
			}
			m.Fail()
			f.ranTo(f.blame(m))
			return
		}
		f.wholeSucceeded()
	})
}

func (f *flight) wholeSucceeded() {
	switch {
	case f.stop && f.p.w.choices.Flip():
		f.ranTo(nil)
	case f.tx.Cut || f.p.w.store.Down:
		f.ranTo(&machine.Failure{Class: store.ClassDown, Err: errHandler})
	default:
		for _, entry := range f.call.Fresh {
			if !f.writeIntents(entry, f.message(entry), "") {
				return
			}
		}
		for _, entry := range f.call.Fresh {
			f.tx.Effects = append(f.tx.Effects, model.Effect{Entry: entry, Message: f.message(entry)})
		}
		f.done = len(f.call.Fresh)
		f.ranTo(nil)
	}
}

// stopRun lets the current handler end, and prevents the start of another handler.
func (f *flight) stopRun(abort bool) { f.stop, f.abort = true, f.abort || abort }

// stepNames returns the steps of a process that starts now; nil if it has none.
func (w *world) stepNames() []string {
	if w.Plan.Steps == 0 {
		return nil
	}
	names := []string{"reserve", "charge", "ship", "mail"}[:w.Plan.Steps]
	if w.now < w.Plan.ChangeAt {
		return names
	}
	switch w.Plan.Change {
	case plan.RenamesFirst:
		names[0] = "book"
	case plan.RenamesSecond:
		names[1] = "pay"
	case plan.Swaps:
		names[0], names[1] = names[1], names[0]
	case plan.Adds:
		return append(names, "archive")
	case plan.Removes:
		return names[:len(names)-1]
	}
	return names
}

// deploy restarts every process with changed steps.
func (w *world) deploy() {
	if w.Plan.Steps == 0 || w.Plan.Change == plan.Unchanged {
		return
	}
	w.agenda.Add(w.Plan.ChangeAt, func() {
		if w.calm || w.quiet {
			return
		}
		w.recordFault("the steps are changed", "to %q", w.stepNames())
		for _, p := range w.living() {
			p.runWhenThawed(p.sendStop)
		}
	})
}

// acts reports whether a message misbehaves in this batch, and not only at a later step.
func (f *flight) acts(entry int, m *model.Message) bool {
	c := handOf(f.of.Entries[entry].Item).claim
	return m.Times > 0 && (c == nil || len(f.p.names) == 0 || len(c.Steps) >= m.From)
}

// takesEffect handles the success of a handler or of a step.
func (f *flight) takesEffect(entry int, m *model.Message) {
	x := model.Effect{Entry: entry, Message: m}
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil && len(f.p.names) > 0 {
		x.Step = f.p.names[steps.Next(c.Steps)]
		c.Stepped = steps.With(c.Steps, x.Step, []byte(x.Step+" of "+m.ID))
		x.Part = steps.Left(f.p.names, c.Stepped)
	}
	f.tx.Effects = append(f.tx.Effects, x)
	f.done++
}

// stepOf returns the step that the handler of an entry runs; empty if there are no steps.
func (f *flight) stepOf(entry int) string {
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil && len(f.p.names) > 0 {
		return f.p.names[steps.Next(c.Steps)]
	}
	return ""
}

// stepped returns the entries that have a further step.
func (f *flight) stepped() (entries []int) {
	for _, x := range f.tx.Effects {
		if x.Part {
			entries = append(entries, x.Entry)
		}
	}
	return entries
}

// endsAs returns the outcome of an entry in the commit of the batch.
func (f *flight) endsAs(entry int) machine.As {
	as := f.of.Entries[entry].As
	if as == machine.AsApplied && slices.Contains(f.stepped(), entry) {
		return machine.AsStepped
	}
	return as
}

// betweenSteps draws whether the process crashes or freezes after the commit of a step.
func (f *flight) betweenSteps() {
	w := f.p.w
	switch {
	case f.p.over || len(f.stepped()) == 0:
	case w.hurt(plan.TroubleCrash):
		f.p.die("crash", "between two steps")
	case w.hurt(plan.TroubleFreeze):
		f.p.freeze()
	}
}

// goesOn counts whether the same or another process continues a message with completed steps.
func (p *process) goesOn(r *model.Row) {
	w := p.w
	switch {
	case len(r.Steps) == 0 || r.By == nil:
	case r.By == p:
		w.coverage.Add("fault", "a step after another of the same life")
	case r.By.(*process).died:
		w.coverage.Add("fault", "a step after a crash between two")
	case r.By.(*process).frozen:
		w.coverage.Add("fault", "a step of a message whose last is a frozen process's")
	default:
		w.coverage.Add("fault", "a step after another of another life")
	}
}

// lateStep counts a step whose claim was lost before the commit.
func (f *flight) lateStep() {
	if len(f.p.names) > 0 && len(f.tx.Effects) > 0 {
		f.p.w.coverage.Add("fault", "a late commit of a step refused")
	}
}

// stepNamesOf returns the names of completed steps.
func stepNamesOf(done []store.StepDone) (names []string) {
	for i := range done {
		names = append(names, done[i].Name)
	}
	return names
}
