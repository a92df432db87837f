package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/groupcommit"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/store"
)

// A call that only reads needs no claim. The message is marked in the transaction that applies the answer. If several
// copies of a message are processed at the same time, the first committed marker counts. Before the call, the marker is
// looked up, so that a duplicate makes no call.

// identityOf identifies a message that has no marker yet, and its content.
type identityOf struct {
	scope int64
	id    string
	print semel.Fingerprint
}

func ofMark(m *store.Mark) identityOf { return identityOf{m.Scope, string(m.ID), m.Fingerprint} }

// marking is the answer of a call. The answer will be applied in the transaction that marks the message.
type marking[Tx any] struct {
	mark    store.Mark
	options store.TxOptions
	trim    bool                            // the marker is removed again
	apply   func(context.Context, Tx) error // nil if the message is only marked
}

// lookups processes a message that has no inbox row: lookups looks up the marker, makes the call, and then marks the
// message. For messages with an inbox row, lookups works as answering does.
type lookups[Tx, Answer any] struct {
	*answering[Tx, Answer]
	// reusableAnswers contains answers that may be applied again. uncertainMarks contains the messages for which a
	// lookup of the marker is not enough, because the outcome of an earlier commit is unknown.
	reusableAnswers unapplied[identityOf, Answer]
	uncertainMarks  unapplied[identityOf, struct{}]
	// lookupGroup looks up the markers of several workers in one statement. markingGroup writes the
	// markers of several workers in one transaction.
	lookupGroup  *groupcommit.Group[store.Mark, store.Verdict]
	markingGroup *groupcommit.Group[marking[Tx], store.Result]
}

// NewLookups returns the runner of NewCalling with StrategyMarker. The store must implement
// store.Leases.
func NewLookups[Tx, Answer any](over *answering[Tx, Answer]) *lookups[Tx, Answer] {
	r := &lookups[Tx, Answer]{answering: over}
	r.lookupGroup = groupcommit.New(over.store.(store.Leases).LookUpMarkers, r.isOnes, 0)
	r.markingGroup = groupcommit.New(r.markAll, isApart, over.store.Limits().Batch)
	return r
}

// Begin looks up the marker and opens no transaction. Begin opens a transaction only if a lookup is not sufficient: the
// outcome of an earlier commit is unknown, or the message is marked but was not applied.
func (r *lookups[Tx, Answer]) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (Begun[Call], error) {
	if len(marks) != 1 || marks[0].As != store.Applied || marks[0].Claim.Token != 0 {
		return r.answering.Begin(ctx, o, marks)
	}
	id := ofMark(&marks[0])
	if _, doubted := r.uncertainMarks.take(id); !doubted {
		v, err := r.lookupGroup.Do(ctx, marks[0])
		if err != nil {
			return Begun[Call]{}, err
		}
		if v.Kind == store.Fresh || v.Already(store.Applied) {
			return Begun[Call]{Attempt: &lookupAttempt[Tx, Answer]{r: r, options: o, mark: marks[0], alreadyApplied: v.Kind == store.Seen}, Verdicts: []store.Verdict{v}}, nil
		}
	}
	b, err := beginReceipt(ctx, r.store, o, marks)
	switch {
	case err != nil:
		r.uncertainMarks.keep(id, struct{}{})
		return Begun[Call]{}, err
	case b.Verdicts[0].Kind != store.Fresh:
		r.reusableAnswers.take(id) // the answer of the message is no longer needed
		return b, nil
	}
	b.Rollback(ctx) // no open transaction has marked the message, because Begin would have waited for its lock
	b.Attempt = &lookupAttempt[Tx, Answer]{r: r, options: o, mark: marks[0]}
	return b, nil
}

// lookupAttempt processes a message that is marked after its call. During the call, lookupAttempt uses no database
// connection.
type lookupAttempt[Tx, Answer any] struct {
	untransacted
	r       *lookups[Tx, Answer]
	options store.TxOptions
	mark    store.Mark
	// alreadyApplied means that the message was applied before, so no call is made.
	alreadyApplied bool

	answer Answer
	// If no handler ran, apply is nil: the marker is removed again, or the message is only marked.
	apply func(context.Context, Tx) error
}

// Run takes the answer that an earlier attempt has left, or makes the call. Commit applies the answer.
func (a *lookupAttempt[Tx, Answer]) Run(j *Job[Call]) (err error) {
	answer, kept := a.r.reusableAnswers.take(ofMark(&a.mark))
	if !kept {
		if answer, err = a.r.makeCall(j.Ctx, j.Message); err != nil {
			return err
		}
	}
	a.answer = answer
	handler, m := j.Ctx, j.Message
	a.apply = func(commit context.Context, tx Tx) error {
		return a.r.apply(handlersContext{commit, handler}, tx, answer, m)
	}
	return nil
}

// Queued implements Attempt. Queued counts the answer that Commit applies, because applying an answer may take as long
// as a handler.
func (a *lookupAttempt[Tx, Answer]) Queued() int {
	if a.apply == nil {
		return 0
	}
	return 1
}

// Commit marks the message and applies the answer, together with other messages that commit at the same time. Commit
// writes no inbox row. If the marker must only be removed again, Commit still begins a transaction, to find out whether
// the store accepts transactions.
func (a *lookupAttempt[Tx, Answer]) Commit(ctx context.Context, e store.Ending) Outcome {
	if a.alreadyApplied {
		return Outcome{Result: store.Result{Outcome: store.Committed, Culprit: store.NoCulprit}}
	}
	id := ofMark(&a.mark)
	r, err := a.r.markingGroup.Do(ctx, marking[Tx]{a.mark, a.options, len(e.Trim) > 0, a.apply})
	if err != nil { // the outcome of the shared transaction is unknown
		r = store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	if r.Outcome == store.CommitUnknown || r.Class == store.ClassClaimLost {
		a.r.uncertainMarks.keep(id, struct{}{})
	}
	again := r.Outcome == store.CommitUnknown || r.Outcome == store.NotCommitted && mayAgain(r.Class) || errors.Is(r.Err, errMarkBusy)
	if again && a.apply != nil {
		a.r.reusableAnswers.keep(id, a.answer)
	}
	return Outcome{Result: r}
}

// errMarkedElsewhere means that another transaction has marked the message. The next Begin asks the store for the
// outcome. An errMarkedElsewhere does not count as an attempt.
var errMarkedElsewhere = errors.New("semel: what was called for was marked elsewhere meanwhile, or may not run yet")

// markAll marks several messages and applies their answers in one transaction. If the transaction fails, it
// is rolled back and each message is committed alone, so that the failure is attributed to the message that
// caused it. No call is repeated.
func (r *lookups[Tx, Answer]) markAll(ctx context.Context, all []marking[Tx]) (out []store.Result, err error) {
	var group worker.Group // runs the user's functions, which may end their goroutine
	group.Go(func() {
		err = ErrGoexit
		out, err = r.markAndApply(ctx, all)
	})
	group.Wait()
	if errors.Is(err, ErrGoexit) && len(all) == 1 {
		return []store.Result{{Outcome: store.NotCommitted, Class: store.ClassRetry, Err: ErrGoexit}}, nil
	}
	if err != nil {
		return nil, errApart
	}
	return out, nil
}

// markAndApply is markAll without the protection against runtime.Goexit. If markAndApply returns an error, the
// transaction was rolled back.
func (r *lookups[Tx, Answer]) markAndApply(ctx context.Context, all []marking[Tx]) ([]store.Result, error) {
	if err := r.takeTurn(ctx); err != nil {
		return slices.Repeat([]store.Result{beginFailure(store.ClassContended, err)}, len(all)), nil
	}
	defer r.endTurn()
	marks := make([]store.Mark, len(all))
	for i := range all {
		marks[i] = all[i].mark
	}
	b, verdicts, err := r.store.Begin(ctx, all[0].options, marks)
	if err != nil {
		class := r.store.Classify(err)
		if class == store.ClassContended && len(all) > 1 {
			return nil, errApart // another process may be processing a copy of one of the messages
		}
		return slices.Repeat([]store.Result{beginFailure(class, err)}, len(all)), nil
	}
	over := false
	defer func() {
		if !over { // a function ended its goroutine
			b.Rollback(context.WithoutCancel(ctx))
		}
	}()
	e, out, err := r.applyMarked(ctx, b, verdicts, all)
	if err != nil {
		failed := store.Result{Outcome: store.NotCommitted, Class: r.classOf(ctx, b, err), Err: err}
		if ctx.Err() != nil && failed.Class == store.ClassRetry { // the answers of the other messages took too long
			failed.Class, failed.Culprit = store.ClassContended, store.NoCulprit
		}
		over = true
		b.Rollback(ctx)
		if len(all) > 1 {
			return nil, errApart
		}
		return []store.Result{failed}, nil
	}
	over = true
	// The timeout of the commit depends on the number of queued statements, which is known only now. A caller that
	// stops waiting treats the outcome as unknown.
	commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.config.CommitWithin(queuedStatements(b)))
	defer cancel()
	result, err := splitResult(b.Commit(commit, e), len(all))
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Outcome == 0 {
			out[i] = result
		}
	}
	return out, nil
}

// applyMarked applies the answers of those messages that are new (Fresh), and returns the results of the other
// messages.
func (r *lookups[Tx, Answer]) applyMarked(ctx context.Context, b store.Batch[Tx], verdicts []store.Verdict, all []marking[Tx]) (e store.Ending, out []store.Result, err error) {
	out = make([]store.Result, len(all))
	for i := range all {
		switch verdicts[i].Kind {
		case store.Fresh:
			if all[i].trim {
				e.Trim = append(e.Trim, i)
				continue
			}
			if all[i].apply != nil {
				err = all[i].run(ctx, r.config.Timeout, b.Tx(i))
			}
			if err == nil && TxAborted(b) {
				err = SwallowedError(b)
			}
			if err != nil {
				return e, nil, err
			}
			continue
		case store.Gap, store.Stale, store.Behind, store.Old: // the marker is written, but the message must not run
			e.Trim = append(e.Trim, i)
		}
		out[i] = store.Result{Outcome: store.NotCommitted, Class: store.ClassClaimLost, Culprit: store.NoCulprit, Err: errMarkedElsewhere}
	}
	return e, out, nil
}

// run applies the answer: run calls the field apply, and returns an error if apply panics or exceeds the timeout.
func (m *marking[Tx]) run(ctx context.Context, timeout time.Duration, tx Tx) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, ErrTimeout)
	defer cancel()
	defer Recover(&err)
	err = guard.Readable(m.apply(ctx, tx))
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) { // the timeout counts, whatever error the database driver returns
		return cause
	}
	return err
}

// classOf returns the class of an error of the function that applies an answer.
func (r *lookups[Tx, Answer]) classOf(ctx context.Context, b store.Batch[Tx], err error) store.Class {
	if class := classifyHandler(ctx, r.store, b, err); class != store.ClassNone {
		return class
	}
	return store.ClassRetry
}

// beginFailure returns the result of a message whose transaction could not begin. No message has caused the failure. If
// another process is processing a copy of the message, the next Begin finds the copy and waits.
func beginFailure(class store.Class, err error) store.Result {
	r := store.Result{Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: store.NoCulprit, Err: &notOpened{err}}
	if class == store.ClassContended {
		r.Class, r.Err = store.ClassClaimLost, errMarkBusy
	}
	return r
}

// errMarkBusy means that another process is processing a copy of the message. The answer is saved until the outcome of
// the copy is known.
var errMarkBusy = errors.New("semel: a copy of what was called for is in flight elsewhere")

// handlersContext is the context of a commit with the values of a handler's context.
type handlersContext struct {
	context.Context
	values context.Context
}

func (c handlersContext) Value(key any) any { return c.values.Value(key) }
