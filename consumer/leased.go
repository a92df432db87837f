package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/consumer/internal/runner"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/store"
)

// Call is what handlers that call out get in place of a transaction; see NewLeased and NewKeyed.
type Call = runner.Call

// NewLeased is New for handlers that call out: what they do is in no transaction, and none is
// open while they run. A message waits in the store's inbox, is claimed for a lease that is
// extended while its handler runs, and is completed under its token when the handler has
// returned. So of the processes of a consumer one at a time calls for a message, as long as
// handlers heed their contexts and processes are not frozen for longer than a lease. The call
// happens at least once: again after a crash between it and its record, and where the lease was
// lost meanwhile. Give the other side Message.IdempotencyKey.
//
// A flight has one message, since no call can be rolled back for a neighbour's sake;
// Config.Workers bounds how many run at once. It needs a store with store.Inbox and
// store.Leases, StrategyInbox, and, where there is a Source, AckOnReceipt: receipts are
// transactions of the store, and the only ones. Process is not for it.
func NewLeased[Tx any](st store.TxStore[Tx], handle func(ctx context.Context, call Call, m *semel.Message) error, c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	return newLeased(st, engine.Handler[Call]{One: handle}, c, plans)
}

// NewLeasedSteps is NewSteps for steps that call out: no transaction is open while a step runs.
// A step is done at least once, and never again after its end was written.
func NewLeasedSteps[Tx any](st store.TxStore[Tx], steps []Step[Call], c Config, plans ...faults.Plan) (*Consumer[Call], error) {
	return newLeased(st, engine.Handler[Call]{Steps: stepsOf(steps)}, c, plans)
}

func newLeased[Tx any](st store.TxStore[Tx], h engine.Handler[Call], policy Config, plans []faults.Plan) (*Consumer[Call], error) {
	c, err := policy.settings(needsOf(&h, byClaim, st), plans)
	if err != nil {
		return nil, err
	}
	return assemble(c, st, runner.NewClaims(&c.run, st), h), nil
}

// fitsClaims reports what of the policy or of the store is in the way of a consumer whose
// handlers call out under claims.
func (c *settings) fitsClaims(st any) error {
	switch {
	case !claimsRows(st):
		return fmt.Errorf("the store has no inbox, which claims are of: %w", semel.ErrUnsupported)
	case c.Strategy != StrategyInbox:
		return fmt.Errorf("handlers call out and the Strategy is %v; it must be %v: calls are no part of a transaction that a marker could be in", c.Strategy, StrategyInbox)
	case c.Source != nil && !c.AckOnReceipt:
		return errors.New("handlers call out, there is a Source, and AckOnReceipt is not set; set it: a message is called for only when it is claimed")
	}
	return nil
}
