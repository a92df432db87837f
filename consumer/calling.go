package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/groupcommit"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

// NewCalling returns a consumer that calls outside and writes inside: call asks somebody
// else while no transaction is open, and apply writes into tx what follows from the
// answer, in the one transaction that completes the message's claim under its token. So
// what apply writes happens once, while the call happens at least once and needs
// Message.IdempotencyKey, as with NewLeased.
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
// NewLeased, without Lookup.
//
// Config is what NewLeased needs: StrategyInbox and, where there is a Source,
// AckOnReceipt. Or it is StrategyMarker, for a call that changes nothing by itself,
// so that what it answers is all: then no claim is taken and nothing is written before the
// call, which is made any number of times, by several processes at once where copies
// arrive; a duplicate of what has taken effect calls nobody. The answers of several
// messages share a transaction, in which each is marked, and whose mark is first counts.
// Provider has no meaning then. It is much faster: see docs/calling-out.md. Process is not
// for either. Plans are for tests.
func NewCalling[Tx, Answer any](st store.TxStore[Tx], call func(ctx context.Context, m *semel.Message) (Answer, error), apply func(ctx context.Context, tx Tx, answer Answer, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	if st == nil || call == nil || apply == nil {
		return nil, fmt.Errorf("semel: consumer %q: NewCalling needs an opened store, a function that calls and one that applies the answer; one of them is nil", c.Name)
	}
	if c.Provider.Lookup != nil {
		return nil, fmt.Errorf("semel: consumer %q: Provider.Lookup is set, and with NewCalling it could say that a call took effect, and not what it answered, which apply needs; leave it out", c.Name)
	}
	way := byAnswer
	if c.Strategy == StrategyMarker {
		way = byLookup
	}
	s, err := c.settings(needs{way: way, store: st}, plans)
	if err != nil {
		return nil, err
	}
	r := newAnswering(s, st, call, apply)
	if way == byLookup {
		return assemble(s, st, newLookups(r), handler[Call]{}), nil
	}
	return assemble(s, st, r, handler[Call]{}), nil
}

// answering runs the flight of a claim as a call and then a transaction that applies the answer
// and ends the claim. It receives messages as claims does.
type answering[Tx, Answer any] struct {
	*claims[Tx]
	call  func(ctx context.Context, m *semel.Message) (Answer, error)
	apply func(ctx context.Context, tx Tx, answer Answer, m *semel.Message) error
	// unapplied are answers that the same claim may apply again.
	unapplied unapplied[store.Claim, Answer]
	// gatherer: what is queued of several answers shares transactions; nil if the store's
	// handlers do not queue.
	gatherer store.QueueStore[Tx]
	applies  *groupcommit.Group[applying[Tx], store.Result]
	// turn is held while a transaction is open of a store that has one writer; nil for
	// others.
	turn chan struct{}
}

func newAnswering[Tx, Answer any](c *settings, st store.TxStore[Tx], call func(context.Context, *semel.Message) (Answer, error), apply func(context.Context, Tx, Answer, *semel.Message) error) *answering[Tx, Answer] {
	r := &answering[Tx, Answer]{claims: newClaims(c, st), call: call, apply: apply}
	if st.Limits().SingleWriter {
		r.turn = make(chan struct{}, 1)
	}
	if g, able := st.(store.QueueStore[Tx]); able {
		r.gatherer = g
		r.applies = groupcommit.New(r.applyAll, isApart, 0)
	}
	return r
}

func (r *answering[Tx, Answer]) begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (begun[Call], error) {
	if len(marks) == 0 || !areClaim(marks) {
		return r.claims.begin(ctx, o, marks)
	}
	claim, b, err := r.beginClaim(ctx, o, marks)
	if err != nil {
		return begun[Call]{}, err
	}
	if b.verdicts[0].Kind == store.ClaimLost {
		r.unapplied.take(marks[0].Claim)
	}
	b.attempt = &answered[Tx, Answer]{claimed: claim, r: r, options: o, marks: marks}
	return b, nil
}

// makeCall makes the call of a message.
func (r *answering[Tx, Answer]) makeCall(ctx context.Context, m *semel.Message) (Answer, error) {
	answer, err := r.call(ctx, m)
	if err == nil {
		r.config.guard.At(faults.AfterCall, 1)
	}
	return answer, err
}

// answered is the flight of a claim whose transaction begins when its call was answered.
type answered[Tx, Answer any] struct {
	*claimed // as long as no transaction is open
	r        *answering[Tx, Answer]
	options  store.TxOptions
	marks    []store.Mark
	turn     bool // held

	isAnswered bool
	answer     Answer
	// refused is why no transaction could begin, again that what was open is to be
	// tried again with the same answer.
	refused store.Class
	again   bool
	opened  opened[Tx]
}

// run makes the call and applies its answer. An answer is applied when its transaction commits,
// which ends the claim; until then it is not known here what the call did, so that nobody makes
// another one after Provider.Window.
func (a *answered[Tx, Answer]) run(j *job[Call]) error {
	h := j.row
	if a.r.unapplied.has(a.marks[0].Claim) { // nobody is called
		h.calls.Making()
		return a.callAndApply(j)
	}
	rule := a.config.callRule()
	rule.Once = true
	switch h.calls.Next(a.started, rule, time.Since(a.asked), j.left()) {
	case calls.Make:
	case calls.Keep:
		a.kept = true
		return nil
	case calls.Leave:
		return j.leave()
	default:
		_, err := a.config.doubt(j.ctx, a.started.Since, j.message) // without Lookup it says how the message ends
		return err
	}
	h.calls.Making()
	err := a.callAndApply(j)
	if !a.isAnswered {
		h.calls.Made(j.ctx.Err() != nil, err)
	}
	return err
}

// callAndApply applies the answer that is kept from a try before, or that of a call.
func (a *answered[Tx, Answer]) callAndApply(j *job[Call]) (err error) {
	answer, kept := a.r.unapplied.take(a.marks[0].Claim)
	if !kept {
		if answer, err = a.r.makeCall(j.ctx, j.message); err != nil {
			return err
		}
	}
	a.isAnswered, a.answer = true, answer
	tx, err := a.open(j)
	if err != nil {
		return err
	}
	return a.r.apply(j.ctx, tx, answer, j.message)
}

// open begins the transaction, in which the claim must stand.
func (a *answered[Tx, Answer]) open(j *job[Call]) (tx Tx, err error) {
	if j.ctx.Err() != nil { // the answer came too late
		return tx, context.Cause(j.ctx)
	}
	if a.gathers() {
		b := a.r.gatherer.Combinable(a.marks[0])
		a.opened.set(b)
		return b.Tx(0), nil
	}
	if err := a.r.takeTurn(j.ctx); err != nil {
		return tx, err
	}
	a.turn = true
	begin, cancel := context.WithTimeout(j.ctx, a.options.Answer)
	defer cancel()
	b, verdicts, err := a.r.store.Begin(begin, a.options, a.marks)
	if err != nil {
		if a.refused = a.r.store.Classify(err); a.refused != store.ClassContended {
			a.refused = store.ClassDown // whatever it is, it is no message's fault
		}
		return tx, err
	}
	a.opened.set(b)
	switch v := verdicts[0]; v.Kind {
	case store.Fresh:
		return b.Tx(0), nil
	case store.ClaimLost:
		a.refused = store.ClassClaimLost
		return tx, j.leave()
	default:
		a.refused = store.ClassRetry
		return tx, fmt.Errorf("semel: the claim stands and its transaction says %v", v)
	}
}

// gathers reports whether what is queued of the answer shares a transaction with others.
func (a *answered[Tx, Answer]) gathers() bool { return a.r.gatherer != nil && !a.options.Serial }

// takeTurn waits until no other transaction is open, where the store has one writer.
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

// endTurn is for who has taken it.
func (r *answering[Tx, Answer]) endTurn() {
	if r.turn != nil {
		<-r.turn
	}
}

// end ends the turn, and keeps the answer if the same claim may apply it again.
func (a *answered[Tx, Answer]) end() {
	a.opened.set(nil)
	if a.turn {
		a.r.endTurn()
		a.turn = false
	}
	if a.again && a.isAnswered {
		a.r.unapplied.keep(a.marks[0].Claim, a.answer)
	}
}

// mayAgain reports whether what failed so is nobody's fault.
func mayAgain(c store.Class) bool { return c == store.ClassContended || c == store.ClassDown }

func (a *answered[Tx, Answer]) commit(ctx context.Context, e store.Ending) outcome {
	defer a.end()
	b := a.opened.get()
	if b == nil { // no handler ran
		return a.claimed.commit(ctx, e)
	}
	var r store.Result
	if a.gathers() {
		r = a.r.applyQueued(ctx, applying[Tx]{store.QueuedBatch[Tx]{Batch: b, Ending: e}, a.options})
	} else {
		r = b.Commit(ctx, e)
	}
	a.again = r.Outcome == store.NotCommitted && mayAgain(r.Class)
	return outcome{Result: r}
}

func (a *answered[Tx, Answer]) rollback(ctx context.Context) {
	defer a.end()
	if b := a.opened.get(); b != nil {
		b.Rollback(ctx)
	}
}

func (a *answered[Tx, Answer]) kill() {
	if b := a.opened.get(); b != nil {
		b.Kill()
	}
}

// classify: before its transaction is open a message meets nothing of the store.
func (a *answered[Tx, Answer]) classify(ctx context.Context, err error) store.Class {
	class := a.refused
	if b := a.opened.get(); b != nil && class == store.ClassNone {
		class = classifyHandler(ctx, a.r.store, b, err)
	}
	if class == store.ClassNone {
		return store.ClassRetry
	}
	a.again = mayAgain(class)
	return class
}

func (a *answered[Tx, Answer]) transaction() any { return a.opened.get() }
func (a *answered[Tx, Answer]) queued() int      { return queuedIn(a.opened.get()) }
