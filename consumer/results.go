package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/internal/admin"
)

// KeepResult stores the result of a handler beside the message's marker, in the transaction that applies the message.
// Config.OnDuplicate and Consumer.Result return the stored result. Pass the ctx, tx and m that the handler got. If
// KeepResult is called twice for a message, the second result replaces the first.
//
// KeepResult costs one statement. A Queue sends the statement of KeepResult together with its other statements. A
// result has at most admin.MaxResult bytes and is removed with its marker. KeepResult needs a store that keeps results
// (admin.Results), and StrategyMarker or StrategyInbox. With NewCalling, call KeepResult in apply. With NewLeased,
// KeepResult cannot be used, because handlers of NewLeased have no transaction. An error of KeepResult means that no
// result is stored; the handler must return the error.
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

// Result returns the result that KeepResult stored for a message, for example after Process has found a duplicate. The
// parameter key is the message's Identity. If no result is stored, Result returns nil: the message was not applied, its
// handler stored no result, or its marker was removed. A stored result of 0 bytes is not nil. If none of Run, Work and
// Process has begun, or if the store keeps no results, the error is semel.ErrUnsupported.
func (c *Consumer[Tx]) Result(ctx context.Context, key semel.Key) ([]byte, error) {
	e := c.currentEngine()
	if e == nil {
		return nil, fmt.Errorf("semel: consumer %q: Result is for a consumer that has begun to Run, Work or Process: %w", c.config.Name, semel.ErrUnsupported)
	}
	if key.Consumer != c.config.Name {
		return nil, fmt.Errorf("semel: consumer %q: the key is of consumer %q", c.config.Name, key.Consumer)
	}
	return e.Result(ctx, key)
}
