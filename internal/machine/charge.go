package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// blame counts a failed attempt of a message and decides how to continue. If a commit failed although the message's
// handler did not run, the failure does not count as an attempt: a later commit writes the message's row
// with the reason of the failure.
func (m *Machine) blame(it *Item, f Failure, ran bool) {
	if !ran {
		t := it.ensureTrouble()
		f.Free = true
		m.wait(it, f, m.jitter(m.config.InitialDelay, m.config.MaxInMemoryWait, t.busy))
		t.busy++
		return
	}
	why := it.ensureFailure()
	if why.first == nil {
		why.first = f.Err
	}
	why.last = f.Err
	if it.trouble != nil {
		it.trouble.waitStart = 0 // a later wait for other transactions starts at zero
	}
	if !f.Free {
		it.attempts++
	}
	switch f.decision() {
	case semel.DecidePermanent:
		m.endFailed(it, f, m.config.OnExhausted, semel.ReasonPermanent)
	case semel.DecidePark:
		m.endAs(it, EndPark, f.Reason)
	case semel.DecideDiscard:
		m.handlerWorks()
		m.endAs(it, EndDiscard, f.Reason)
	case semel.DecideDuplicate:
		m.handlerWorks()
		m.alreadyThere(it)
	case semel.DecidePreconditionFailed:
		if m.config.OnPrecondition == EndRetry {
			m.retry(it, f)
			return
		}
		m.endFailed(it, f, m.config.OnPrecondition, semel.ReasonPrecondition)
	default:
		m.retry(it, f)
	}
}

func (f Failure) decision() semel.Decision {
	if f.Decision == 0 && f.Class == store.ClassPermanent {
		return semel.DecidePermanent
	}
	return f.Decision
}

func reasonOr(reason, otherwise semel.Reason) semel.Reason {
	if reason == "" {
		return otherwise
	}
	return reason
}

// retry keeps a message in memory or in the inbox for another attempt. If the consumer never waits (OneAttempt), the
// message is returned to the caller. If the attempts of the message are used up, the message ends.
func (m *Machine) retry(it *Item, f Failure) {
	if !f.Free {
		m.tryFailed(it, f.Err)
	}
	switch {
	case int(it.attempts) >= m.config.MaxAttempts:
		m.endFailed(it, f, m.config.OnExhausted, semel.ReasonExhausted)
		return
	case f.After > m.config.MaxInMemoryWait && !m.config.OneAttempt && !m.config.Wait && it.Claim == nil:
		m.endAs(it, EndPark, reasonname.WaitTooLong)
		return
	}
	m.tryLater(it, f, max(f.After, m.jitter(m.config.InitialDelay, m.config.MaxDelay, max(int(it.attempts)-1, 0))))
}

// tryLater lets a message wait until its next attempt. The retry budget may delay the next attempt.
func (m *Machine) tryLater(it *Item, f Failure, d Time) {
	if it.lane.left || m.leaving(it) && !m.config.OneAttempt {
		m.leave(it)
		return
	}
	if !f.Free {
		d = m.planRetry(d)
	}
	if it.Claim != nil || m.config.Wait && d > m.config.MaxInMemoryWait && !m.config.OneAttempt {
		m.waitInInbox(it, f, d)
		return
	}
	m.wait(it, f, d)
	it.nextRunCounts = true
}

// waitInInbox stores a message in the inbox until its next attempt, so that the message does not wait in
// memory (case 6). The message is marked in its worker's next batch, and no handler runs for it.
func (m *Machine) waitInInbox(it *Item, f Failure, d Time) {
	m.do(Report{Kind: ReportRetry, Item: it, Wait: d, Err: f.Err})
	why := it.ensureFailure()
	why.reason, why.after = f.Reason, d
	it.markAs, it.runAlone = AsWaiting, false
	m.requeue(it)
}

func (m *Machine) wait(it *Item, f Failure, d Time) {
	if m.config.OneAttempt && it.markAs == AsApplied {
		m.uncarry(it)
		m.settle(it, Settlement{Kind: semel.Nack, After: d, Reason: f.Reason, Charged: !f.Free, Err: f.Err})
		return
	}
	if m.leaving(it) {
		m.leave(it)
		return
	}
	m.do(Report{Kind: ReportRetry, Item: it, Wait: d, Err: f.Err})
	m.hold(it, m.now+d)
}

// endFailed ends a message that failed permanently, unless the open breaker lets the message wait for another attempt.
func (m *Machine) endFailed(it *Item, f Failure, then Ending, reason semel.Reason) {
	if then != EndDiscard {
		if wait, kept := m.failsForGood(it, f); kept {
			m.tryLater(it, f, wait)
			return
		}
	}
	m.endAs(it, then, reasonOr(f.Reason, reason))
}

// endAs ends a message that failed permanently. The message is marked in its worker's next batch, and no
// handler runs for it.
func (m *Machine) endAs(it *Item, then Ending, reason semel.Reason) {
	it.ensureFailure().reason = reason
	if then == EndPark && m.config.NoRows {
		then = m.config.OnExhausted
	}
	switch then {
	case EndHalt:
		m.halt(it)
		return
	case EndDiscard:
		it.markAs = AsDiscarded
	case EndDeadLetter:
		it.markAs = AsDeadLettered
		if it.Claim != nil { // a claimed row has no delivery that the source could copy
			it.markAs = AsParked
		}
	default:
		it.markAs = AsParked
	}
	it.runAlone = false
	m.requeue(it)
}

// alreadyThere ends a message whose effect exists already, because a unique constraint rejected the insert. If the
// consumer writes markers, a marker is written.
func (m *Machine) alreadyThere(it *Item) {
	if m.config.Unmarked && it.Claim == nil {
		m.settle(it, Settlement{Kind: semel.Ack, Ending: source.EndDuplicate, Err: it.failureOrZero().last})
		return
	}
	it.markAs, it.runAlone = AsDuplicate, false
	m.requeue(it)
}

// The errors in reports about items that wait for other processes or batches.
var (
	errBusy = errors.New("a copy is in flight in another process")
	errHeld = errors.New("another batch has its stream, or a copy of it")
)

// holdBusy makes an item wait while another process is processing a copy, or while a batch has locked the stream.
// Waiting does not count as an attempt (case 5).
func (m *Machine) holdBusy(it *Item) {
	why := errBusy
	if it.Version != nil {
		why = errHeld
	}
	if m.config.OneAttempt {
		m.uncarry(it)
		m.settle(it, Settlement{Kind: semel.Nack, After: m.config.BackoffFirst, Reason: reasonname.Busy, Err: why})
		return
	}
	m.holdAsking(it, ReportBusy, why)
}

// newerError returns an error that describes a marker of a newer release.
func newerError(v store.Verdict) error {
	if v.Was.Known() {
		return errors.New("its marker is of a form that a newer release wrote: what became of it is not known here; start that release, or a newer one")
	}
	return fmt.Errorf("its marker says outcome %d, which a newer release wrote: what became of it is not known here; start that release, or a newer one", int64(v.Was))
}

// holdNewer makes a message wait whose marker has an outcome that only a newer release knows. Waiting does not count as
// an attempt. The message is not acked, because it may still have to be applied.
func (m *Machine) holdNewer(it *Item, v store.Verdict) {
	err := newerError(v)
	if m.config.OneAttempt {
		m.handBackAll(it, Settlement{Kind: semel.Nack, After: m.config.BackoffMost, Reason: reasonname.Newer, Err: err})
		return
	}
	if m.holdAsking(it, ReportNewer, err) && !it.newer {
		it.newer = true
		m.toldNewer++
	}
}

// holdAsking makes an item wait, after which the store is asked again. The result is true if the wait was reported.
func (m *Machine) holdAsking(it *Item, kind ReportKind, err error) (told bool) {
	if m.leaving(it) {
		m.leave(it)
		return false
	}
	told = m.tellWaiting(it, kind, err)
	t := it.ensureTrouble()
	wait := m.jitter(m.config.BackoffFirst, m.config.MaxInMemoryWait, t.busy)
	t.busy++
	until := m.now + wait
	if kind == ReportNewer {
		t.unknown = err
		m.await(it, until.Truncate(askTogether)+askTogether)
		return told
	}
	m.hold(it, until)
	return told
}

// askTogether rounds the times at which the store is asked again about markers of a newer release. Thousands of
// messages may wait for such an answer. Because the times are rounded, one transaction asks about many messages.
const askTogether = time.Second

// Waiting for other processes is reported after waitTold, and then every waitAgain.
const (
	waitTold  = time.Second
	waitAgain = time.Minute
)

// tellWaiting reports why an item waits, if the item has waited long enough. The result is true if a report was made.
func (m *Machine) tellWaiting(it *Item, kind ReportKind, err error) bool {
	t := it.ensureTrouble()
	if changed := t.waits != kind && (t.waits == ReportNewer || kind == ReportNewer); changed || t.waitStart == 0 {
		t.waitStart, t.nextReport, t.waits = m.now, m.now+waitTold, kind
	}
	if m.now < t.nextReport {
		return false
	}
	t.nextReport = m.now + waitAgain
	m.do(Report{Kind: kind, Item: it, N: 1, Wait: m.now - t.waitStart, Err: err})
	return true
}
