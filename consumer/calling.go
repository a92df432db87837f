package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/calls"
)

// NewCalling returns a consumer that calls outside and writes inside: call asks somebody
// else while no transaction is open, and apply writes into tx what follows from the
// answer, in the one transaction that completes the message's claim under its token. So
// what apply writes happens once, while the call happens at least once and needs
// Message.IdempotencyKey, as with Leased.
//
// Of several calls for a message, after a crash or a lease that ended, the first answer
// whose transaction commits counts. A later one changes nothing: its claim is lost, and
// semel.Counts counts it (Inbox.Lost).
//
// An error of call, or of apply, decides on the message as that of any handler; after one
// of apply nothing of the transaction is left, and the call is made again. It is not made
// again where the transaction only met contention, or a store that was down, and the
// claim lasted: then the same answer is applied anew. Config.Timeout holds for both
// together. A message without an effect needs no other form: apply returns nil.
//
// What became of a call is known when its answer is applied. Provider holds for calls as with
// Leased, without Ask.
//
// Config is what Leased needs: StrategyInbox and, where there is a Source,
// SettleAfterReceipt. Or it is StrategyMarker, for a call that changes nothing by itself,
// so that what it answers is all: then no claim is taken and nothing is written before the
// call, which is made any number of times, by several processes at once where copies
// arrive; a duplicate of what has taken effect calls nobody. The answers of several
// messages share a transaction, in which each is marked, and whose mark is first counts.
// Provider has no meaning then. It is much faster: see docs/calling-out.md. Process is not
// for either. Plans are for tests.
func NewCalling[Tx, Answer any](store contract.TxStore[Tx], call func(ctx context.Context, m *semel.Message) (Answer, error), apply func(ctx context.Context, tx Tx, answer Answer, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	if store == nil || call == nil || apply == nil {
		return nil, fmt.Errorf("semel: consumer %q: NewCalling needs an opened store, a function that calls and one that applies the answer; one of them is nil", c.Name)
	}
	if c.Provider.Ask != nil {
		return nil, fmt.Errorf("semel: consumer %q: Provider.Ask is set, and with NewCalling it could say that a call took effect, and not what it answered, which apply needs; leave it out", c.Name)
	}
	called := func() {}
	consumer, err := New(newAnswering[Tx, Answer](store), func(ctx context.Context, over Call, m *semel.Message) error {
		if p, is := over.later.(*pure[Tx, Answer]); is {
			answer, err := p.ask(func() (Answer, error) { return call(ctx, m) }, called)
			if err == nil {
				p.apply = func(commit context.Context, tx Tx) error {
					return apply(handlersContext{commit, ctx}, tx, answer, m)
				}
			}
			return err
		}
		l := over.later.(*later[Tx, Answer])
		answer, err := l.ask(func() (Answer, error) { return call(ctx, m) }, called)
		if err != nil {
			return err
		}
		tx, err := l.open(ctx)
		if err != nil {
			return err
		}
		return apply(ctx, tx, answer, m)
	}, c, plans...)
	if err == nil {
		called = func() { consumer.config.at(faults.AfterCall, 1) }
	}
	return consumer, err
}

// answering carries out a flight of a claim as a call and then a transaction, and any other
// as leased does.
type answering[Tx, Answer any] struct {
	*leased[Tx]
	answers unapplied[contract.Claim, Answer]
	// unmarked are answers, and doubts messages that a look at markers says too little of,
	// of calls that change nothing; looks and marks are those of many workers, and nil for
	// other calls.
	unmarked unapplied[identityOf, Answer]
	doubts   unapplied[identityOf, struct{}]
	looks    *together[contract.Mark, contract.Verdict]
	marks    *together[marking[Tx], contract.Result]
	// timeout is Config.Timeout, and committing how long a commit of a batch may take, where
	// marks is not nil.
	timeout    time.Duration
	committing func(batch any) time.Duration
	// gatherer: what is queued of several answers shares transactions; nil if the store's
	// handlers do not queue.
	gatherer contract.BatchCombiner[Tx]
	applies  *together[applying[Tx], contract.Result]
	// turn is held while a transaction is open of a store that has one writer; nil for
	// others.
	turn chan struct{}
}

func newAnswering[Tx, Answer any](store contract.TxStore[Tx]) *answering[Tx, Answer] {
	s := &answering[Tx, Answer]{leased: Leased(store).(*leased[Tx])}
	if takesTurns(store) {
		s.turn = make(chan struct{}, 1)
	}
	if g, able := store.(contract.BatchCombiner[Tx]); able {
		s.gatherer = g
		s.applies = &together[applying[Tx], contract.Result]{carry: s.applyAll, alone: isApart, pace: &pace{}}
	}
	return s
}

// fitsLeased implements callsOut.
func (s *answering[Tx, Answer]) fitsLeased(c *settings) error {
	if c.Strategy == StrategyMarker {
		return s.fitsPure(c)
	}
	return s.leased.fitsLeased(c)
}

// Begin implements contract.TxStore.
func (s *answering[Tx, Answer]) Begin(ctx context.Context, o contract.TxOptions, marks []contract.Mark) (contract.Batch[Call], []contract.Verdict, error) {
	if s.marks != nil && len(marks) == 1 && marks[0].As == contract.Applied && marks[0].Claim.Token == 0 {
		return s.beginPure(ctx, o, marks)
	}
	b, verdicts, err := s.leased.Begin(ctx, o, marks)
	claim, is := b.(*outside)
	if err != nil || !is || len(marks) == 0 {
		return b, verdicts, err
	}
	if verdicts[0].Kind == contract.ClaimLost {
		s.answers.take(marks[0].Claim)
	}
	return &later[Tx, Answer]{outside: claim, s: s, options: o, marks: marks}, verdicts, nil
}

// later is the flight of a claim whose transaction begins when its call was answered.
type later[Tx, Answer any] struct {
	*outside // as long as no transaction is open
	s        *answering[Tx, Answer]
	options  contract.TxOptions
	marks    []contract.Mark
	turn     bool // held

	answered bool
	answer   Answer
	// refused is why no transaction could begin, again that what was open is to be
	// tried again with the same answer.
	refused contract.Class
	again   bool
	opened  opened[Tx]
}

// call implements caller. An answer is applied when its transaction commits, which ends the
// claim; until then it is not known here what the call did, so that nobody makes another one
// after Provider.Window.
func (l *later[Tx, Answer]) call(ctx context.Context, c *settings, h *heldRow, left func() time.Duration, m *semel.Message, run func() error) error {
	if l.s.answers.has(l.marks[0].Claim) { // nobody is called
		h.calls.Making()
		return run()
	}
	rule := c.callRule()
	rule.Once = true
	switch h.calls.Next(l.started, rule, time.Since(l.asked), left()) {
	case calls.Make:
	case calls.Keep:
		return l.keep()
	case calls.Leave:
		return l.leave()
	default:
		_, err := c.doubt(ctx, l.started.Since, m) // without Ask it says how the message ends
		return err
	}
	h.calls.Making()
	err := run()
	if !l.answered {
		h.calls.Made(ctx.Err() != nil, err)
	}
	return err
}

// ask returns the answer that is kept from a try before, or that of a call.
func (l *later[Tx, Answer]) ask(call func() (Answer, error), called func()) (answer Answer, err error) {
	answer, kept := l.s.answers.take(l.marks[0].Claim)
	if !kept {
		if answer, err = call(); err != nil {
			return answer, err
		}
		called()
	}
	l.answered, l.answer = true, answer
	return answer, nil
}

// open begins the transaction, in which the claim must stand.
func (l *later[Tx, Answer]) open(ctx context.Context) (tx Tx, err error) {
	if ctx.Err() != nil { // the answer came too late
		return tx, context.Cause(ctx)
	}
	if l.s.gatherer != nil && !l.options.Serial {
		b := l.s.gatherer.Combinable(l.marks[0])
		l.opened.set(b)
		return b.Tx(0), nil
	}
	if err := l.s.takeTurn(ctx); err != nil {
		return tx, err
	}
	l.turn = true
	begin, cancel := context.WithTimeout(ctx, l.options.Answer)
	defer cancel()
	b, verdicts, err := l.s.store.Begin(begin, l.options, l.marks)
	if err != nil {
		if l.refused = l.s.store.Classify(err); l.refused != contract.ClassContended {
			l.refused = contract.ClassDown // whatever it is, it is no message's fault
		}
		return tx, err
	}
	l.opened.set(b)
	switch v := verdicts[0]; v.Kind {
	case contract.Fresh:
		return b.Tx(0), nil
	case contract.ClaimLost:
		l.refused = contract.ClassClaimLost
		return tx, l.leave()
	default:
		l.refused = contract.ClassRetry
		return tx, fmt.Errorf("semel: the claim stands and its transaction says %v", v)
	}
}

// takeTurn waits until no other transaction is open, where the store has one writer.
func (s *answering[Tx, Answer]) takeTurn(ctx context.Context) error {
	if s.turn == nil {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endTurn is for who has taken it.
func (s *answering[Tx, Answer]) endTurn() {
	if s.turn != nil {
		<-s.turn
	}
}

// end ends the turn, and keeps the answer if the same claim may apply it again.
func (l *later[Tx, Answer]) end() {
	l.opened.set(nil)
	if l.turn {
		l.s.endTurn()
		l.turn = false
	}
	if l.again && l.answered {
		l.s.answers.keep(l.marks[0].Claim, l.answer)
	}
}

// mayAgain reports whether what failed so is nobody's fault.
func mayAgain(c contract.Class) bool { return c == contract.ClassContended || c == contract.ClassDown }

// Tx implements contract.Batch.
func (l *later[Tx, Answer]) Tx(int) Call { return Call{l} }

// Commit implements contract.Batch.
func (l *later[Tx, Answer]) Commit(ctx context.Context, e contract.Ending) contract.Result {
	defer l.end()
	b := l.opened.get()
	if b == nil { // no handler ran
		return l.outside.Commit(ctx, e)
	}
	var r contract.Result
	if l.s.gatherer != nil && !l.options.Serial {
		r = l.s.apply(ctx, applying[Tx]{contract.QueuedBatch[Tx]{Batch: b, Ending: e}, l.options})
	} else {
		r = b.Commit(ctx, e)
	}
	l.again = r.Outcome == contract.NotCommitted && mayAgain(r.Class)
	return r
}

// Rollback implements contract.Batch.
func (l *later[Tx, Answer]) Rollback(ctx context.Context) {
	defer l.end()
	if b := l.opened.get(); b != nil {
		b.Rollback(ctx)
	}
}

// Kill implements contract.Batch.
func (l *later[Tx, Answer]) Kill() {
	if b := l.opened.get(); b != nil {
		b.Kill()
	}
}

// ClassifyHandler implements contract.HandlerClassifier. Before its transaction is open a
// message meets nothing of the store.
func (l *later[Tx, Answer]) ClassifyHandler(ctx context.Context, err error) contract.Class {
	class := l.refused
	if b := l.opened.get(); b != nil && class == contract.ClassNone {
		class = classifyHandler(ctx, l.s.store, b, err)
	}
	if class == contract.ClassNone {
		return contract.ClassRetry
	}
	l.again = mayAgain(class)
	return class
}

// TxAborted implements contract.TxStatus.
func (l *later[Tx, Answer]) TxAborted() bool {
	b, asks := l.opened.get().(contract.TxStatus)
	return asks && b.TxAborted()
}

// AbortCause implements contract.TxAbortCause.
func (l *later[Tx, Answer]) AbortCause() error {
	if b, knows := l.opened.get().(contract.TxAbortCause); knows {
		return b.AbortCause()
	}
	return nil
}

// Queued implements contract.Queues.
func (l *later[Tx, Answer]) Queued() int {
	if b, queues := l.opened.get().(contract.Queues); queues {
		return b.Queued()
	}
	return 0
}

// OnCallback implements contract.CommitCallbacks.
func (l *later[Tx, Answer]) OnCallback(begin func(mark int) (ended func())) {
	if b, calls := l.opened.get().(contract.CommitCallbacks); calls {
		b.OnCallback(begin)
	}
}
