package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/groupcommit"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

// answering processes a claimed row: it makes the call, and then applies the answer and ends the claim in one
// transaction. For messages without a row, answering works as claims does.
type answering[Tx, Answer any] struct {
	*claims[Tx]
	call  func(ctx context.Context, m *semel.Message) (Answer, error)
	apply func(ctx context.Context, tx Tx, answer Answer, m *semel.Message) error
	// unapplied contains the answers whose transaction failed. Under the same claim, the answer may be applied again.
	unapplied unapplied[store.Claim, Answer]
	// gatherer commits the queued statements of several answers in one transaction. gatherer is nil if
	// handlers of this store do not queue statements.
	gatherer admin.QueueStore[Tx]
	applies  *groupcommit.Group[applying[Tx], store.Result]
	// turn serves as a lock while a transaction is open, if the store has a single writer. For other stores, turn is
	// nil.
	turn chan struct{}
}

// NewAnswering returns the runner of NewCalling with StrategyInbox.
func NewAnswering[Tx, Answer any](c *Options, st store.TxStore[Tx], call func(context.Context, *semel.Message) (Answer, error), apply func(context.Context, Tx, Answer, *semel.Message) error) *answering[Tx, Answer] {
	r := &answering[Tx, Answer]{claims: NewClaims(c, st), call: call, apply: apply}
	if st.Limits().SingleWriter {
		r.turn = make(chan struct{}, 1)
	}
	if g, able := st.(admin.QueueStore[Tx]); able {
		r.gatherer = g
		r.applies = groupcommit.New(r.applyAll, isApart, 0)
	}
	return r
}

func (r *answering[Tx, Answer]) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (Begun[Call], error) {
	if len(marks) == 0 || !areClaim(marks) {
		return r.claims.Begin(ctx, o, marks)
	}
	claim, b, err := r.beginClaim(ctx, o, marks)
	if err != nil {
		return Begun[Call]{}, err
	}
	if b.Verdicts[0].Kind == store.ClaimLost {
		r.unapplied.take(marks[0].Claim)
	}
	b.Attempt = &answerAttempt[Tx, Answer]{claimAttempt: claim, r: r, options: o, marks: marks}
	return b, nil
}

func (r *answering[Tx, Answer]) makeCall(ctx context.Context, m *semel.Message) (Answer, error) {
	answer, err := r.call(ctx, m)
	if err == nil {
		r.config.At(faults.AfterCall, 1)
	}
	return answer, err
}

// answerAttempt processes a claimed row whose transaction begins after the call.
type answerAttempt[Tx, Answer any] struct {
	*claimAttempt // used while no transaction is open
	r             *answering[Tx, Answer]
	options       store.TxOptions
	marks         []store.Mark
	turn          bool // this goroutine has the lock answering.turn

	isAnswered bool
	answer     Answer
	// beginErrorClass is the class of the error if the transaction could not begin. mustReapply means that the
	// same answer must be applied in another transaction.
	beginErrorClass store.Class
	mustReapply     bool
	opened          opened[Tx]
}

// Run makes the call and applies the answer. The outcome of the call counts as unknown until the transaction that ends
// the claim has committed. So no call is repeated after Provider.Window.
func (a *answerAttempt[Tx, Answer]) Run(j *Job[Call]) error {
	h := j.Row
	if a.r.unapplied.has(a.marks[0].Claim) { // no call is needed
		h.Calls.Making()
		return a.callAndApply(j)
	}
	rule := a.config.Provider.Rule
	rule.Once = true
	switch h.Calls.Next(a.callStart, rule, time.Since(a.requestedAt), j.remainingLease()) {
	case calls.Make:
	case calls.Keep:
		a.alreadySent = true
		return nil
	case calls.Leave:
		return j.loseClaim()
	default:
		_, err := a.config.doubt(j.Ctx, a.callStart.Since, j.Message) // the error says how the message ends
		return err
	}
	h.Calls.Making()
	err := a.callAndApply(j)
	if !a.isAnswered {
		h.Calls.Made(j.Ctx.Err() != nil, err)
	}
	return err
}

// callAndApply applies the answer that an earlier attempt has left. If no answer was left, callAndApply makes the call
// and applies its answer.
func (a *answerAttempt[Tx, Answer]) callAndApply(j *Job[Call]) (err error) {
	answer, kept := a.r.unapplied.take(a.marks[0].Claim)
	if !kept {
		if answer, err = a.r.makeCall(j.Ctx, j.Message); err != nil {
			return err
		}
	}
	a.isAnswered, a.answer = true, answer
	tx, err := a.beginTx(j)
	if err != nil {
		return err
	}
	return a.r.apply(j.Ctx, tx, answer, j.Message)
}

// beginTx begins a transaction and checks in this transaction that the claim is valid.
func (a *answerAttempt[Tx, Answer]) beginTx(j *Job[Call]) (tx Tx, err error) {
	if j.Ctx.Err() != nil { // the answer came too late
		return tx, context.Cause(j.Ctx)
	}
	if a.canCombine() {
		b := a.r.gatherer.Combinable(a.marks[0])
		a.opened.set(b)
		return b.Tx(0), nil
	}
	if err := a.r.takeTurn(j.Ctx); err != nil {
		return tx, err
	}
	a.turn = true
	begin, cancel := context.WithTimeout(j.Ctx, a.options.Answer)
	defer cancel()
	b, verdicts, err := a.r.store.Begin(begin, a.options, a.marks)
	if err != nil {
		if a.beginErrorClass = a.r.store.Classify(err); a.beginErrorClass != store.ClassContended {
			a.beginErrorClass = store.ClassDown // a message cannot have caused an error of Begin
		}
		return tx, err
	}
	a.opened.set(b)
	switch v := verdicts[0]; v.Kind {
	case store.Fresh:
		return b.Tx(0), nil
	case store.ClaimLost:
		a.beginErrorClass = store.ClassClaimLost
		return tx, j.loseClaim()
	default:
		a.beginErrorClass = store.ClassRetry
		return tx, fmt.Errorf("semel: the claim stands and its transaction says %v", v)
	}
}

// canCombine reports whether the statements of an answer may share a transaction with other answers.
func (a *answerAttempt[Tx, Answer]) canCombine() bool {
	return a.r.gatherer != nil && !a.options.Serial
}

// takeTurn waits until no other transaction is open, if the store has a single writer.
func (r *answering[Tx, Answer]) takeTurn(ctx context.Context) error {
	if r.turn == nil {
		return nil
	}
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endTurn allows the next transaction, after takeTurn.
func (r *answering[Tx, Answer]) endTurn() {
	if r.turn != nil {
		<-r.turn
	}
}

// end allows the next transaction. If the answer may be applied again under the same claim, the method end saves the
// answer.
func (a *answerAttempt[Tx, Answer]) end() {
	a.opened.set(nil)
	if a.turn {
		a.r.endTurn()
		a.turn = false
	}
	if a.mustReapply && a.isAnswered {
		a.r.unapplied.keep(a.marks[0].Claim, a.answer)
	}
}

// mayAgain reports whether the same answer may be applied again after a failure of the class c, because the message has
// not caused the failure.
func mayAgain(c store.Class) bool { return c == store.ClassContended || c == store.ClassDown }

func (a *answerAttempt[Tx, Answer]) Commit(ctx context.Context, e store.Ending) Outcome {
	defer a.end()
	b := a.opened.get()
	if b == nil { // no handler ran
		return a.claimAttempt.Commit(ctx, e)
	}
	var r store.Result
	if a.canCombine() {
		r = a.r.applyQueued(ctx, applying[Tx]{admin.QueuedBatch[Tx]{Batch: b, Ending: e}, a.options})
	} else {
		r = b.Commit(ctx, e)
	}
	a.mustReapply = r.Outcome == store.NotCommitted && mayAgain(r.Class)
	return Outcome{Result: r}
}

func (a *answerAttempt[Tx, Answer]) Rollback(ctx context.Context) {
	defer a.end()
	if b := a.opened.get(); b != nil {
		b.Rollback(ctx)
	}
}

func (a *answerAttempt[Tx, Answer]) Kill() {
	if b := a.opened.get(); b != nil {
		b.Kill()
	}
}

// Classify implements Attempt. While no transaction is open, the store cannot have caused the handler's
// error.
func (a *answerAttempt[Tx, Answer]) Classify(ctx context.Context, err error) store.Class {
	class := a.beginErrorClass
	if b := a.opened.get(); b != nil && class == store.ClassNone {
		class = classifyHandler(ctx, a.r.store, b, err)
	}
	if class == store.ClassNone {
		return store.ClassRetry
	}
	a.mustReapply = mayAgain(class)
	return class
}

func (a *answerAttempt[Tx, Answer]) Transaction() any { return a.opened.get() }
func (a *answerAttempt[Tx, Answer]) Queued() int      { return queuedStatements(a.opened.get()) }
