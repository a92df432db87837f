package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/internal/admin"
)

// KeepResult keeps what a handler made of its message beside the message's marker, in the
// transaction that applies it: for Config.OnDuplicate and Consumer.Result. ctx, tx and m
// are those that the handler was given. A second call for a message replaces what the
// first has kept.
//
// It costs a statement, which a Queue sends with the others. A result has at most
// admin.MaxResult bytes, and goes with its marker. It needs a store that keeps results
// (admin.Results) and StrategyMarker or StrategyInbox; with NewCalling it is for
// the function that applies, and with NewLeased, which has no transaction, there is none. An
// error says that nothing is kept, and must be returned.
func KeepResult[Tx any](ctx context.Context, tx Tx, m *semel.Message, result []byte) error {
	k := engine.ResultContextOf(ctx)
	switch {
	case k == nil:
		return errors.New("semel: KeepResult needs the context that a handler was given")
	case k.Why != nil:
		return semel.Permanent(k.Why)
	case m == nil || m.Identity.ID == "" || m.Identity.Consumer != k.Consumer:
		return semel.Permanent(errors.New("semel: KeepResult needs the message that the handler was given"))
	case len(result) > admin.MaxResult:
		return semel.Permanent(fmt.Errorf("semel: the result has %d bytes, and at most %d are kept; keep a reference to it", len(result), admin.MaxResult))
	}
	keeper, can := k.Store.(admin.Results[Tx])
	if !can {
		return semel.Permanent(fmt.Errorf("semel: consumer %q: its store keeps no results in a %T: %w", k.Consumer, tx, semel.ErrUnsupported))
	}
	scope, err := k.Scope(ctx, m.Identity.Source)
	if err != nil {
		return err
	}
	return keeper.KeepResult(ctx, tx, admin.ResultOf{Scope: scope, ID: []byte(m.Identity.ID)}, result)
}

// Result returns what KeepResult has kept for a message, such as one that Process has found
// to be a duplicate: key is its Identity. nil says that nothing is kept: it was not applied,
// its handler kept nothing, or its marker is gone; an empty result is not nil. Run, Work or
// Process has begun before, or the error is semel.ErrUnsupported; so it is where the store
// keeps no results.
func (c *Consumer[Tx]) Result(ctx context.Context, key semel.Key) ([]byte, error) {
	e := c.running()
	if e == nil {
		return nil, fmt.Errorf("semel: consumer %q: Result is for a consumer that has begun to Run, Work or Process: %w", c.config.Name, semel.ErrUnsupported)
	}
	if key.Consumer != c.config.Name {
		return nil, fmt.Errorf("semel: consumer %q: the key is of consumer %q", c.config.Name, key.Consumer)
	}
	return e.Result(ctx, key)
}
