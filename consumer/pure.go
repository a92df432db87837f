package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/worker"
)

// A call that changes nothing by itself needs no claim: what is written down is the mark,
// in the transaction that applies its answer, and whichever copy's mark is first counts.
// Before the call markers are looked at, so that a duplicate calls nobody; the look decides
// nothing else.

// identityOf is what is known of a message that waits for its mark.
type identityOf struct {
	scope int64
	id    string
	print semel.Fingerprint
}

func ofMark(m *contract.Mark) identityOf { return identityOf{m.Scope, string(m.ID), m.Fingerprint} }

// marking is what a call was answered, which is to be applied with its message's mark.
type marking[Tx any] struct {
	mark    contract.Mark
	options contract.TxOptions
	trim    bool                            // the mark is taken back
	apply   func(context.Context, Tx) error // nil: it is only marked
}

// fitsPure is fitsLeased for calls that change nothing.
func (s *answering[Tx, Answer]) fitsPure(c *settings) error {
	looker, looks := s.store.(contract.MarkerLookup)
	switch {
	case s.store == nil:
		return errors.New("the store of NewCalling is nil; pass one that is open")
	case s.Leases == nil || s.Inbox == nil || s.calls == nil:
		return fmt.Errorf("the store has no inbox, in which a message could wait to be called for again: %w", semel.ErrUnsupported)
	case !looks:
		return fmt.Errorf("the store cannot say what became of a message before it is called for (contract.MarkerLookup): %w", semel.ErrUnsupported)
	case c.Former != nil:
		return fmt.Errorf("field Former: messages that share a former identity never share a transaction, and those of NewCalling with %v do; use %v while the identity changes: %w", StrategyMarker, StrategyInbox, semel.ErrUnsupported)
	}
	c.callsOut, c.pure = true, true
	c.Provider.Window = WindowAlways // a row that is claimed is called for as often as it takes
	s.looks = &together[contract.Mark, contract.Verdict]{carry: looker.LookUpMarkers, alone: s.isOnes, pace: &pace{}}
	s.marks = &together[marking[Tx], contract.Result]{carry: s.markAll, alone: isApart, pace: &pace{}}
	if limiter, limits := s.store.(contract.BatchLimiter); limits {
		s.marks.limit = limiter.BatchLimit()
	}
	s.timeout, s.committing = c.Timeout, c.commitTimeout
	return nil
}

// beginPure begins the flight of a message that is called for without a claim. Nothing is
// open. Of one in doubt, and of one that is marked and not applied, the store is asked as a
// batch asks it.
func (s *answering[Tx, Answer]) beginPure(ctx context.Context, o contract.TxOptions, marks []contract.Mark) (contract.Batch[Call], []contract.Verdict, error) {
	id := ofMark(&marks[0])
	if _, doubted := s.doubts.take(id); !doubted {
		v, err := s.looks.do(ctx, marks[0])
		if err != nil {
			return nil, nil, err
		}
		if v.Kind == contract.Fresh || v.Already(contract.Applied) {
			return &pure[Tx, Answer]{s: s, options: o, mark: marks[0], seen: v.Kind == contract.Seen}, []contract.Verdict{v}, nil
		}
	}
	b, verdicts, err := s.store.Begin(ctx, o, marks)
	switch {
	case err != nil:
		s.doubts.keep(id, struct{}{})
		return nil, nil, err
	case verdicts[0].Kind != contract.Fresh:
		s.unmarked.take(id) // its answer has no use any more
		return receipt[Tx]{b}, verdicts, nil
	}
	b.Rollback(ctx) // and no transaction is open that a look could not see
	return &pure[Tx, Answer]{s: s, options: o, mark: marks[0]}, verdicts, nil
}

// pure is the flight of a message that is marked when its call was answered.
type pure[Tx, Answer any] struct {
	s       *answering[Tx, Answer]
	options contract.TxOptions
	mark    contract.Mark
	// seen: it has taken effect before, and nobody calls.
	seen bool

	answer Answer
	// apply is nil where no handler ran: of a message whose mark is taken back, and of one
	// that is only marked.
	apply func(context.Context, Tx) error
}

// ask returns the answer that is kept from a try before, or that of a call.
func (p *pure[Tx, Answer]) ask(call func() (Answer, error), called func()) (answer Answer, err error) {
	answer, kept := p.s.unmarked.take(ofMark(&p.mark))
	if !kept {
		if answer, err = call(); err != nil {
			return answer, err
		}
		called()
	}
	p.answer = answer
	return answer, nil
}

// Tx implements contract.Batch.
func (p *pure[Tx, Answer]) Tx(int) Call { return Call{p} }

// Rollback implements contract.Batch.
func (*pure[Tx, Answer]) Rollback(context.Context) {}

// Kill implements contract.Batch: no connection waits for a call.
func (*pure[Tx, Answer]) Kill() {}

// Queued implements contract.Queues: what follows from the answer is done in the commit, and
// may take as long as a handler.
func (p *pure[Tx, Answer]) Queued() int {
	if p.apply == nil {
		return 0
	}
	return 1
}

// ClassifyHandler implements contract.HandlerClassifier: nothing of the store is met
// before the commit.
func (*pure[Tx, Answer]) ClassifyHandler(context.Context, error) contract.Class {
	return contract.ClassRetry
}

// Commit implements contract.Batch: it marks and applies, with what others have to. A strategy
// that keeps no row of what is applied writes none. Where a mark is only to be taken back, the
// store is asked all the same: it shows whether it takes transactions.
func (p *pure[Tx, Answer]) Commit(ctx context.Context, e contract.Ending) contract.Result {
	if p.seen {
		return contract.Result{Outcome: contract.Committed, Culprit: contract.NoCulprit}
	}
	id := ofMark(&p.mark)
	r, err := p.s.marks.do(ctx, marking[Tx]{p.mark, p.options, len(e.Trim) > 0, p.apply})
	if err != nil { // nobody knows what became of those that share the transaction
		r = contract.Result{Outcome: contract.CommitUnknown, Class: contract.ClassDown, Culprit: contract.NoCulprit, Err: err}
	}
	if r.Outcome == contract.CommitUnknown || r.Class == contract.ClassClaimLost {
		p.s.doubts.keep(id, struct{}{})
	}
	again := r.Outcome == contract.CommitUnknown || r.Outcome == contract.NotCommitted && mayAgain(r.Class) || errors.Is(r.Err, errMarkBusy)
	if again && p.apply != nil {
		p.s.unmarked.keep(id, p.answer)
	}
	return r
}

// errMarkedElsewhere: the next Begin asks the store what became of the message. It is
// nobody's attempt.
var errMarkedElsewhere = errors.New("semel: what was called for was marked elsewhere meanwhile, or may not run yet")

// markAll marks several and applies what they were answered, in one transaction. Where one
// of them fails nothing is left of it, and each goes by itself: nobody is called again, and
// the failure finds the one whose it is.
func (s *answering[Tx, Answer]) markAll(ctx context.Context, all []marking[Tx]) (out []contract.Result, err error) {
	var group worker.Group // functions of the user's run in it, which may end their goroutine
	group.Go(func() {
		err = errGoexit
		out, err = s.markAndApply(ctx, all)
	})
	group.Wait()
	if errors.Is(err, errGoexit) && len(all) == 1 {
		return []contract.Result{{Outcome: contract.NotCommitted, Class: contract.ClassRetry, Err: errGoexit}}, nil
	}
	if err != nil {
		return nil, errApart
	}
	return out, nil
}

// markAndApply is markAll; with an error nothing is left.
func (s *answering[Tx, Answer]) markAndApply(ctx context.Context, all []marking[Tx]) ([]contract.Result, error) {
	if err := s.takeTurn(ctx); err != nil {
		return each(all, notBegunYet(contract.ClassContended, err)), nil
	}
	defer s.endTurn()
	marks := make([]contract.Mark, len(all))
	for i := range all {
		marks[i] = all[i].mark
	}
	b, verdicts, err := s.store.Begin(ctx, all[0].options, marks)
	if err != nil {
		class := s.store.Classify(err)
		if class == contract.ClassContended && len(all) > 1 {
			return nil, errApart // a copy of one of them may be in flight
		}
		return each(all, notBegunYet(class, err)), nil
	}
	over := false
	defer func() {
		if !over { // a function ended its goroutine
			b.Rollback(context.WithoutCancel(ctx))
		}
	}()
	e, out, err := s.applyMarked(ctx, b, verdicts, all)
	if err != nil {
		r := contract.Result{Outcome: contract.NotCommitted, Class: s.classOf(ctx, b, err), Err: err}
		if ctx.Err() != nil && r.Class == contract.ClassRetry { // what it shared with others took its time
			r.Class, r.Culprit = contract.ClassContended, contract.NoCulprit
		}
		over = true
		b.Rollback(ctx)
		if len(all) > 1 {
			return nil, errApart
		}
		return each(all, r), nil
	}
	over = true
	// What it takes is not known before; whoever waits for it no longer asks the store.
	commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.committing(b))
	defer cancel()
	r := b.Commit(commit, e)
	if len(all) > 1 {
		if r.Outcome == contract.NotCommitted && r.Class != contract.ClassDown {
			return nil, errApart
		}
		r.Culprit = contract.NoCulprit
	}
	for i := range out {
		if out[i].Outcome == 0 {
			out[i] = r
		}
	}
	return out, nil
}

// applyMarked applies the answers of those whose marks are fresh, and says what becomes of
// the others.
func (s *answering[Tx, Answer]) applyMarked(ctx context.Context, b contract.Batch[Tx], verdicts []contract.Verdict, all []marking[Tx]) (e contract.Ending, out []contract.Result, err error) {
	out = make([]contract.Result, len(all))
	broken, _ := b.(contract.TxStatus)
	for i := range all {
		switch verdicts[i].Kind {
		case contract.Fresh:
			if all[i].trim {
				e.Trim = append(e.Trim, i)
				continue
			}
			if all[i].apply != nil {
				err = all[i].run(ctx, s.timeout, b.Tx(i))
			}
			if err == nil && broken != nil && broken.TxAborted() {
				err = swallowed(broken)
			}
			if err != nil {
				return e, nil, err
			}
			continue
		case contract.Gap, contract.Stale, contract.Behind, contract.Old: // it is written, and may not run
			e.Trim = append(e.Trim, i)
		}
		out[i] = contract.Result{Outcome: contract.NotCommitted, Class: contract.ClassClaimLost, Culprit: contract.NoCulprit, Err: errMarkedElsewhere}
	}
	return e, out, nil
}

// run applies an answer; a panic is a failure, and so is one that its time-out has ended.
func (m *marking[Tx]) run(ctx context.Context, timeout time.Duration, tx Tx) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	defer recovered(&err)
	err = legible.Error(m.apply(ctx, tx), decidedAgain)
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) { // whatever the store's driver says of it
		return cause
	}
	return err
}

// classOf is what an error of a function that applies means for its message.
func (s *answering[Tx, Answer]) classOf(ctx context.Context, b contract.Batch[Tx], err error) contract.Class {
	if class := classifyHandler(ctx, s.store, b, err); class != contract.ClassNone {
		return class
	}
	return contract.ClassRetry
}

// notBegunYet is the result where no transaction could begin, which is no message's fault,
// whatever it is. Where a copy is in flight elsewhere the next Begin meets it, and waits.
func notBegunYet(class contract.Class, err error) contract.Result {
	r := contract.Result{Outcome: contract.NotCommitted, Class: contract.ClassDown, Culprit: contract.NoCulprit, Err: &notOpened{err}}
	if class == contract.ClassContended {
		r.Class, r.Err = contract.ClassClaimLost, errMarkBusy
	}
	return r
}

// errMarkBusy: what was answered is kept for when it is known what the copy does.
var errMarkBusy = errors.New("semel: a copy of what was called for is in flight elsewhere")

// notOpened is why no transaction could begin in which an answer was to be applied.
type notOpened struct{ error }

func (e *notOpened) Unwrap() error { return e.error }

// IsStoreFault implements contract.FaultClassifier: any message would have met a store that begins
// no transaction, however well it answers looks.
func (s *answering[Tx, Answer]) IsStoreFault(err error) bool {
	var closed *notOpened
	return errors.As(err, &closed) || s.leased.IsStoreFault(err)
}

func each[Tx any](all []marking[Tx], r contract.Result) []contract.Result {
	out := make([]contract.Result, len(all))
	for i := range out {
		out[i] = r
	}
	return out
}

// handlersContext is a context of a commit with the values of a handler's.
type handlersContext struct {
	context.Context
	values context.Context
}

func (c handlersContext) Value(key any) any { return c.values.Value(key) }
