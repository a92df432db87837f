package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// Handler is the user's handler. Exactly one of the three fields is set.
type Handler[Tx any] struct {
	One func(context.Context, Tx, *semel.Message) error
	All func(context.Context, Tx, []*semel.Message) error
	// Steps run one after the other, each in its own batch.
	Steps []Step[Tx]
}

// Step is a part of a handler with its own effect. The parameter done contains the completed steps.
type Step[Tx any] struct {
	Name string
	Run  func(ctx context.Context, tx Tx, m *semel.Message, done []store.StepDone) (output []byte, err error)
}

// run runs the handlers of a batch in order. run ends at the first failure, when the time budget is used up,
// or when stopRun was called.
func (p *pilot[Tx]) run(a machine.Run) machine.Event {
	e := p.engine
	f := p.current(a.Flight)
	out := machine.Ran{Flight: a.Flight}
	f.watch.start(e.config.Timeout, f.cancel, func(it *machine.Item) { e.lanes.send(machine.Stuck{Flight: a.Flight, Item: it}) })
	defer f.watch.end()
	// A handler that calls runtime.Goexit ends the goroutine of the worker. The deferred function then reports the
	// failure, and the worker continues in a new goroutine.
	ended := false
	p.handling.Store(true)
	defer func() {
		p.handling.Store(false)
		f.durations.Handling += p.measurePart(f)
		if !ended {
			out.Failed, out.Failure = true, machine.Failure{Class: store.ClassRetry, Err: runner.ErrGoexit}
			out.Whole = e.Handler.All != nil
			e.lanes.send(out)
		}
	}()
	if e.Handler.All != nil {
		p.runAll(f, a, &out)
	} else {
		p.runEach(f, a, &out)
	}
	ended = true
	e.config.At(faults.AfterEffect, out.Done)
	return out
}

func (p *pilot[Tx]) runEach(f *flight[Tx], a machine.Run, out *machine.Ran) {
	began := time.Now()
	for n, i := range a.Fresh {
		if f.stop.Load() || n > 0 && time.Since(began) > a.Budget {
			return
		}
		canary := p.engine.canaries.due(f.Flight, i)
		if canary && n > 0 {
			return // the messages before the canary are committed first, so that only the canary runs twice
		}
		q := f.Entries[i].Item.Handle.(*delivery.Delivery)
		m := &q.Message
		m.Attempt = f.Entries[i].Item.Attempt()
		f.watch.begin(f.Entries[i].Item)
		err := p.runOne(f, i, m)
		if err != nil {
			out.Failed, out.Failure = true, p.failure(f, err)
			f.failed = i
			return
		}
		out.Done++
		if p.engine.Handler.hasFurtherSteps(inbox.RowOf(q)) {
			out.Stepped = append(out.Stepped, i)
		}
		if canary && !f.stop.Load() {
			p.rollBackCanary(f, out, i)
			return
		}
	}
}

// runOne runs the handler of one entry or, if the handler has steps, the next step of the entry.
func (p *pilot[Tx]) runOne(f *flight[Tx], i int, m *semel.Message) error {
	h, row := &p.engine.Handler, rowOf(&f.Entries[i])
	ctx, m := f.entryContext(i, m)
	f.job = runner.Job[Tx]{Ctx: ctx, Message: m, Mark: f.mark[i], Row: row, Inbox: p.engine.Inbox, Lost: f.cancel, Handle: func(tx Tx) error {
		if h.Steps != nil {
			return h.step(ctx, tx, m, row, p.engine.config.StepOutput)
		}
		return h.One(ctx, tx, m)
	}}
	err := f.call()
	p.engine.config.Rules.NoteTypeAsked(m)
	return err
}

func (p *pilot[Tx]) runAll(f *flight[Tx], a machine.Run, out *machine.Ran) {
	if f.stop.Load() {
		return
	}
	messages := make([]*semel.Message, len(a.Fresh))
	for n, i := range a.Fresh {
		messages[n] = &f.Entries[i].Item.Handle.(*delivery.Delivery).Message
		messages[n].Attempt = f.Entries[i].Item.Attempt()
		_, messages[n] = f.entryContext(i, messages[n])
	}
	ctx := f.batchContext()
	f.watch.begin(nil)
	f.job = runner.Job[Tx]{Ctx: ctx, Message: messages[0], Mark: store.All, Handle: func(tx Tx) error { return p.engine.Handler.All(ctx, tx, messages) }}
	err := f.call()
	for _, m := range messages {
		p.engine.config.Rules.NoteTypeAsked(m)
	}
	if err != nil {
		out.Failed, out.Failure, out.Whole = true, p.failure(f, err), true
		return
	}
	out.Done = len(a.Fresh)
	if !f.stop.Load() && p.engine.canaries.due(f.Flight, a.Fresh...) {
		p.rollBackCanary(f, out, a.Fresh...)
	}
}

// call runs the job of the batch and returns the handler's error. call also returns an error if the handler
// panicked, if it returned after its context was cancelled, or if its transaction can no longer commit.
func (f *flight[Tx]) call() (err error) {
	defer runner.Recover(&err)
	err = guard.Readable(f.Attempt.Run(&f.job))
	f.watch.recordReturn()
	if err == nil && f.ctx.Err() != nil {
		err = context.Cause(f.ctx)
	}
	if err == nil && runner.TxAborted(f.Transaction()) {
		err = runner.SwallowedError(f.Transaction())
	}
	return err
}

// failure converts a handler's error. A broken transaction, contention and a store that is down take precedence over
// the decision of the handler.
func (p *pilot[Tx]) failure(f *flight[Tx], err error) machine.Failure {
	out := machine.Failure{Class: store.ClassRetry, Err: err}
	if cause := context.Cause(f.ctx); cause != nil {
		out.Err = cause
		switch {
		case errors.Is(cause, errAborted):
			out.Class = store.ClassContended
		case errors.Is(cause, store.ErrClaimLost): // a claim of the batch is lost, so the failure counts as an attempt of no message
			out.Class = store.ClassClaimLost
		}
		return out
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.engine.base), p.engine.config.CommitTimeout)
	defer cancel()
	switch class := f.Classify(ctx, err); class {
	case store.ClassContended, store.ClassDown, store.ClassAborted, store.ClassClaimLost:
		out.Class, out.Outside = class, runner.StoreFault(p.engine.Store, err)
		return out
	case store.ClassPermanent:
		out.Class = store.ClassPermanent
	}
	decide(&out, err)
	return out
}

// decide adds the handler's decision to the failure.
func decide(out *machine.Failure, err error) {
	var decided *semel.HandlerError
	if !errors.As(err, &decided) {
		return
	}
	out.Decision, out.After, out.Reason = decided.Decision, decided.After, decided.Reason
	out.Free = decided.Reason == reasonname.UnknownType || decided.Reason == semel.ReasonOutcomeUnknown && decided.Decision != semel.DecideRetry
	if decided.Decision == semel.DecideRetry && out.Class == store.ClassPermanent {
		out.Class = store.ClassRetry // the handler's decision takes precedence
	}
}

// watch limits the time of handlers. After the timeout, watch cancels the context of the handler. If the handler still
// does not return, watch closes the handler's connection. All handlers of a batch share one timer.
type watch struct {
	mutex   sync.Mutex
	timer   *time.Timer
	limit   time.Duration
	began   time.Time     // start of the running handler
	running bool          // a handler is running
	item    *machine.Item // item of the running handler; nil for a handler of whole batches
	over    bool
	expired bool
	told    bool // stuck was called
	cancel  context.CancelCauseFunc
	stuck   func(*machine.Item)
}

// stuckAfter is how long a handler may run after its context was cancelled, before watch calls the function stuck.
const stuckAfter = time.Second

// start starts the watch. The function cancel is called while the mutex is locked and must not block. The function
// stuck is called while the mutex is not locked, and may block.
func (w *watch) start(limit time.Duration, cancel context.CancelCauseFunc, stuck func(*machine.Item)) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.limit, w.cancel, w.stuck = limit, cancel, stuck
	w.timer = time.AfterFunc(limit, w.onTimer)
}

func (w *watch) begin(it *machine.Item) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.running, w.item, w.began = true, it, time.Now()
}

// recordReturn records that a handler has returned. recordReturn is called before the handler's context is checked,
// so that a timeout is attributed to the late handler and never to the next handler.
func (w *watch) recordReturn() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.running = false
}

func (w *watch) end() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.over = true
	w.timer.Stop()
}

func (w *watch) onTimer() {
	if it, stuck := w.checkTimeout(); stuck {
		w.stuck(it)
	}
}

// checkTimeout is called by the timer of a handler. After the timeout, checkTimeout cancels the handler's context. If
// the handler has still not returned after a further second (stuckAfter), checkTimeout returns the handler's item and
// true.
func (w *watch) checkTimeout() (it *machine.Item, stuck bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch left := w.limit - time.Since(w.began); {
	case w.over:
	case !w.running:
		w.timer.Reset(w.limit)
	case left > 0:
		w.timer.Reset(left)
	case !w.expired:
		w.expired = true
		w.cancel(runner.ErrTimeout)
		w.timer.Reset(stuckAfter)
	default:
		w.over, w.told = true, true
		return w.item, true
	}
	return nil, false
}
