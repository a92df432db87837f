package consumer

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/faults"
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
	r := runner.NewAnswering(&s.run, st, call, apply)
	if way == byLookup {
		return assemble(s, st, runner.NewLookups(r), engine.Handler[Call]{}), nil
	}
	return assemble(s, st, r, engine.Handler[Call]{}), nil
}

// fitsLookups reports what of the policy or of the store is in the way of a consumer whose
// calls change nothing.
func (c *settings) fitsLookups(st any) error {
	switch {
	case !claimsRows(st):
		return fmt.Errorf("the store has no inbox, in which a message could wait to be called for again: %w", semel.ErrUnsupported)
	case c.PreviousIdentity != nil:
		return fmt.Errorf("PreviousIdentity is set: messages that share a former identity never share a transaction, and those of NewCalling with %v do; use %v while the identity changes: %w", StrategyMarker, StrategyInbox, semel.ErrUnsupported)
	}
	return nil
}
