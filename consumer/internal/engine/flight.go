package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/consumer/internal/surrogate"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/store"
)

// pilot is a worker: it processes batches, one at a time.
type pilot[Tx any] struct {
	engine *Engine[Tx]
	orders chan machine.Action
	scopes []scopes.Of // numbers of the sources of the last batch; the slice is reused
	// handling and committing report what the worker does now. If a run cannot stop the worker, its error contains this
	// information.
	handling, committing atomic.Bool

	mutex  sync.Mutex
	flight *flight[Tx] // the current batch; guarded by mutex, written by the pilot
}

// The type flight is a batch that is being processed.
type flight[Tx any] struct {
	*machine.Flight
	runner.Attempt[Tx]
	marks []store.Mark
	// For each entry, the slice mark contains the index of the entry's marker in marks, or store.All for an entry
	// without a marker.
	mark []int
	// For each entry, the slice known contains the store's answer about the entry's claim, if the claim was found to
	// have ended before the batch began. If there are no claims, the slice is nil.
	known []store.Verdict
	began time.Time
	// accountedTime is the time that the finished parts of the batch took. durations contains the time of
	// each part.
	accountedTime time.Duration
	durations     measure.Batch
	// The field spans contains the spans of the sampled messages, or nil if no message is sampled. The field failed is
	// the entry whose handler failed, or store.NoCulprit if no handler failed or if one handler ran for all entries.
	spans  *spans
	failed int
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   atomic.Bool
	watch  watch
	// job is the handler that runs. Because job is a field, running a handler allocates no job.
	job runner.Job[Tx]
}

func (p *pilot[Tx]) work() {
	for order := range p.orders {
		e := p.carryOut(order)
		p.engine.recheck.Note(e)
		select {
		case p.engine.events <- e:
		case <-p.engine.base.Done():
		}
	}
	if f := p.flight; f != nil { // the run ended before the batch
		p.rollback(machine.Rollback{Flight: f.Flight})
	}
}

func (p *pilot[Tx]) carryOut(order machine.Action) machine.Event {
	switch a := order.(type) {
	case machine.Begin:
		return p.begin(a)
	case machine.Run:
		return p.run(a)
	case machine.Commit:
		return p.commit(a)
	case machine.Rollback:
		return p.rollback(a)
	}
	panic("semel: unknown order for a pilot")
}

func (p *pilot[Tx]) set(f *flight[Tx]) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.flight = f
}

func (p *pilot[Tx]) current(m *machine.Flight) *flight[Tx] {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.flight == nil || p.flight.Flight != m {
		return nil
	}
	return p.flight
}

// stopRun ends the handlers of a batch. The engine's loop calls stopRun while the worker runs the handlers.
func (p *pilot[Tx]) stopRun(a machine.StopRun) {
	if f := p.current(a.Flight); f != nil {
		f.stop.Store(true)
		if a.Abort {
			f.cancel(errAborted)
		}
	}
}

// kill closes the connection of a batch. The engine's loop calls kill while the worker processes the batch.
func (p *pilot[Tx]) kill(m *machine.Flight) {
	if f := p.current(m); f != nil {
		f.Kill()
	}
}

var errAborted = errors.New("semel: the consumer is stopping")

// begin opens the transaction of a batch and writes the markers. Features do their work in the function ready before
// the transaction begins, and in recordBegun after it has begun.
func (p *pilot[Tx]) begin(a machine.Begin) machine.Event {
	e := p.engine
	f := &flight[Tx]{Flight: a.Flight, began: time.Now(), failed: store.NoCulprit}
	defer func() {
		f.durations.Marking = p.measurePart(f)
		if f.Attempt == nil {
			p.reportMeasurements(f, measure.NotBegun, store.NoCulprit)
		}
	}()
	ctx, cancel := context.WithTimeout(e.base, e.config.CommitTimeout)
	defer cancel()
	if err := p.ready(ctx, f); err != nil {
		return machine.Marked{Flight: a.Flight, Class: store.ClassDown, Err: err}
	}
	asked := time.Now()
	b, err := e.Runner.Begin(ctx, e.config.txOptions(a.Serial), f.marks)
	if err != nil {
		p.keepNothing(f)
		return newNotBegun(a.Flight, e.Store.Classify(err), err)
	}
	f.Attempt = b.Attempt
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(e.base))
	p.set(f)
	return machine.Marked{Flight: a.Flight, Verdicts: p.recordBegun(f, b, asked)}
}

// ready prepares a batch for its transaction: the schema is checked again if necessary, claims are reclaimed
// and their leases extended, and the markers are created.
func (p *pilot[Tx]) ready(ctx context.Context, f *flight[Tx]) error {
	if err := p.engine.recheck.Check(ctx); err != nil {
		return err
	}
	if err := p.lookAhead(ctx, f); err != nil {
		return err
	}
	if err := p.prepare(ctx, f); err != nil {
		return err
	}
	p.keepWaiting(f)
	p.prepareCall(f)
	return nil
}

// recordBegun returns the verdict of each entry of a batch whose transaction has begun, and passes the verdicts to the
// retention, the leases of claims and the traces. The parameter asked is the time before the transaction began.
func (p *pilot[Tx]) recordBegun(f *flight[Tx], b runner.Begun[Tx], asked time.Time) []store.Verdict {
	e := p.engine
	e.config.Retention.JudgeTimes(f.marks, b.Verdicts)
	all := f.verdicts(b.Verdicts)
	if b.Extended {
		for _, h := range f.validClaims(all) {
			e.Inbox.Keeper.Lasts(h, asked.Add(e.config.Lease))
		}
	}
	p.keep(f, all)
	e.config.At(faults.AfterMark, len(f.Entries))
	p.forgetLost(f, all)
	p.trace(f, all)
	return all
}

// newNotBegun returns the event for a transaction that could not begin. No message has caused the failure: either
// another transaction holds a lock, or the store is down.
func newNotBegun(f *machine.Flight, c store.Class, err error) machine.Marked {
	if c == store.ClassContended {
		return machine.Marked{Flight: f, Class: c, CopyBusy: true, Err: err}
	}
	return machine.Marked{Flight: f, Class: store.ClassDown, Err: err}
}

// markLock is how long the marker of a message waits while another process handles a copy of the message
// (case 5).
const markLock = 50 * time.Millisecond

// effectLock is how long a handler's statement waits for a row that another transaction holds. After
// effectLock the batch fails as contended and runs again.
const effectLock = time.Second

// idleGrace is added to the handler's timeout. If a transaction has no statement for the timeout plus idleGrace, the
// server ends the transaction, so that a frozen process does not block the process that replaces it.
const idleGrace = 10 * time.Second

// txOptions returns the settings of a batch's transaction. EffectLock is shorter than the handler's timeout,
// so that a wait for a lock does not count as an attempt of the message.
func (c *Config) txOptions(serial bool) store.TxOptions {
	return store.TxOptions{
		MarkLock: markLock, EffectLock: min(effectLock, c.Timeout/2), Idle: c.Timeout + idleGrace,
		Statement: c.Timeout, Answer: c.CommitTimeout, Lease: c.Lease,
		// Turn limits the wait for another batch of a store with a single writer. Turn is shorter than the
		// timeout of Begin, so that a long wait can be distinguished from a server that does not respond.
		Serial: serial, Consumer: c.Consumer, Turn: c.CommitTimeout * 2 / 3,
		Working: c.Working,
	}
}

// prepare creates the markers of the batch's entries.
func (p *pilot[Tx]) prepare(ctx context.Context, f *flight[Tx]) error {
	p.scopes = f.scopes(p.scopes[:0])
	if err := p.engine.Scopes.Know(ctx, p.scopes); err != nil {
		return err
	}
	f.mark = make([]int, len(f.Entries))
	f.marks = make([]store.Mark, 0, len(f.Entries))
	ids := make([]byte, 0, f.idLength()) // the ids of all markers share one allocation
	var names []byte                     // the names of the lines of all markers
	for i, en := range f.Entries {
		if en.Unmarked || f.known != nil && f.known[i].Kind != 0 {
			f.mark[i] = store.All
			continue
		}
		first := len(ids)
		ids = append(ids, en.Item.Identity...)
		scope, err := p.engine.Scopes.Number(ctx, scopes.Of{Source: en.Item.Source})
		if err != nil {
			return err
		}
		f.mark[i] = len(f.marks)
		m := store.Mark{Scope: scope, Consumer: p.engine.config.Consumer, Source: en.Item.Source, ID: ids[first:len(ids):len(ids)], Fingerprint: en.Item.Print, As: en.As.Outcome(), Version: p.engine.config.versionOf(en.Item.Handle.(*delivery.Delivery), asksStream(en.As))}
		if m.Previous, err = p.markFormer(ctx, en.Item, &ids); err != nil {
			return err
		}
		m.Line = p.markLine(&names, &f.Entries[i])
		if h := rowOf(&en); h != nil {
			m.Claim = h.Claim()
		} else if m.Asks() { // also for a message that is stored in the inbox, because its age is not checked again
			m.Age = p.engine.config.Retention.AgeOf(en.Item.Handle.(*delivery.Delivery))
		}
		f.marks = append(f.marks, m)
	}
	return nil
}

func (f *flight[Tx]) idLength() int {
	n := 0
	for i := range f.Entries {
		n += len(f.Entries[i].Item.Identity)
		if former := f.Entries[i].Item.Former; former != nil {
			n += len(former.Identity)
		}
	}
	return n
}

// verdicts returns for every entry whether its message is new, a duplicate, a conflict or lost (store.Verdict). For an
// entry without a marker, verdicts returns the known verdict or, if there is none, Fresh.
func (f *flight[Tx]) verdicts(of []store.Verdict) []store.Verdict {
	out := make([]store.Verdict, len(f.Entries))
	for i, mark := range f.mark {
		if mark == store.All {
			out[i] = store.Verdict{Kind: store.Fresh}
			if f.known != nil && f.known[i].Kind != 0 {
				out[i] = f.known[i]
			}
			continue
		}
		out[i] = of[mark]
	}
	return out
}

// commit commits the batch. The commit has its own timeout. A commit does not end with the run, because its outcome
// would then be unknown.
func (p *pilot[Tx]) commit(a machine.Commit) machine.Event {
	e := p.engine
	f := p.current(a.Flight)
	defer f.cancel(nil)
	ending := store.Ending{}
	for _, i := range a.Trim {
		if f.mark[i] != store.All {
			ending.Trim = append(ending.Trim, f.mark[i])
		}
	}
	var over []*inbox.ClaimedRow
	for i := range a.Rows {
		if h := rowOf(&f.Entries[a.Rows[i].Entry]); h != nil {
			ending.Claims = append(ending.Claims, f.claimEnding(&a.Rows[i], h))
			over = append(over, h)
		} else {
			ending.Rows = append(ending.Rows, f.row(&a.Rows[i]))
		}
	}
	if f.known != nil {
		e.Inbox.Keeper.Move(f.claims(), time.Now().Add(e.config.CommitWithin(f.Queued())))
	}
	e.config.At(faults.BeforeCommit, len(f.Entries))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.base), e.config.CommitWithin(f.Queued()))
	defer cancel()
	p.committing.Store(true)
	p.calls(f)
	result := f.Attempt.Commit(ctx, ending)
	p.committing.Store(false)
	p.set(nil)
	f.durations.Committing = p.measurePart(f)
	p.reportMeasurements(f, batchEnd(result.Outcome), f.entryOf(result.Culprit))
	why := machine.Failure{Class: result.Class}
	decide(&why, result.Err)
	ended := machine.Ended{Flight: a.Flight, Outcome: result.Outcome, Class: why.Class, Culprit: f.entryOf(result.Culprit),
		Decision: why.Decision, After: why.After, Reason: why.Reason, Outside: runner.StoreFault(e.Store, result.Err), Err: result.Err, Freed: result.Freed}
	switch result.Outcome {
	case store.Committed:
		p.keepNothing(f)
		if over != nil {
			e.Inbox.Forget(over...)
		}
		p.reportCommitted(f, &result)
		e.canaries.forgetEnded(f.Flight, e.machine.Ending)
		e.config.At(faults.AfterCommit, len(f.Entries))
	case store.CommitUnknown:
		p.keepNothing(f) // the claims are reclaimed
		e.config.At(faults.CommitReplyLost, len(f.Entries))
	case store.NotCommitted:
		ended.Until = p.keepAfter(ctx, f)
	}
	return ended
}

// reportCommitted reports an effect without a key, and an intent that was not sent again.
func (p *pilot[Tx]) reportCommitted(f *flight[Tx], o *runner.Outcome) {
	n := p.engine.Reporter
	if o.WithoutKey != nil {
		n.LogItem(slog.LevelWarn, f.Entries[0].Item, semel.Event{Kind: eventkind.WithoutKey, Messages: 1, Err: o.WithoutKey})
	}
	if o.NotReEmitted {
		n.NotReEmitted(1)
	}
}

func (f *flight[Tx]) entryOf(mark int) int {
	if mark != store.NoCulprit {
		for i := range f.mark {
			if f.mark[i] == mark {
				return i
			}
		}
	}
	return store.NoCulprit
}

func (f *flight[Tx]) row(r *machine.Row) store.Row {
	q := f.Entries[r.Entry].Item.Handle.(*delivery.Delivery)
	row := store.Row{Mark: f.mark[r.Entry], Repeat: r.Repeat, Conflict: r.Conflict, Reason: r.Reason, Message: &q.Message, Attempts: r.Attempts,
		FirstError: inbox.ErrorText(r.First), LastError: inbox.ErrorText(r.Last), State: store.StateParked, Surrogate: q.Item.Source == surrogate.Source}
	switch r.As {
	case machine.AsApplied, machine.AsDuplicate:
		row.State = store.StateCompleted
	case machine.AsDiscarded:
		row.State = store.StateDiscarded
	case machine.AsDeadLettered:
		row.State = store.StateDeadLettered
	case machine.AsReceived:
		row.State = store.StateReceived
	case machine.AsBlocked:
		row.State, row.After = store.StateBlocked, r.After
	case machine.AsWaiting:
		row.State, row.After = store.StateFailedRetryable, r.After
	}
	return row
}

func (p *pilot[Tx]) rollback(a machine.Rollback) machine.Event {
	f := p.current(a.Flight)
	defer f.cancel(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.engine.base), p.engine.config.CommitTimeout)
	defer cancel()
	f.Attempt.Rollback(ctx)
	until := p.keepAfter(ctx, f)
	p.set(nil)
	p.reportMeasurements(f, measure.RolledBack, f.failed)
	return machine.Ended{Flight: a.Flight, Outcome: store.NotCommitted, Culprit: store.NoCulprit, Until: until}
}
