package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/store"
)

// KeepResult keeps what a handler made of its message beside the message's marker, in the
// transaction that applies it: for Config.OnDuplicate and Consumer.Result. ctx, tx and m
// are those that the handler was given. A second call for a message replaces what the
// first has kept.
//
// It costs a statement, which a Queue sends with the others. A result has at most
// store.MaxResult bytes, and goes with its marker. It needs a store that keeps results
// (store.Results) and StrategyMarker or StrategyInbox; with NewCalling it is for
// the function that applies, and with NewLeased, which has no transaction, there is none. An
// error says that nothing is kept, and must be returned.
func KeepResult[Tx any](ctx context.Context, tx Tx, m *semel.Message, result []byte) error {
	k, _ := ctx.Value(keepingOf{}).(*keeping)
	switch {
	case k == nil:
		return errors.New("semel: KeepResult needs the context that a handler was given")
	case k.why != nil:
		return semel.Permanent(k.why)
	case m == nil || m.Identity.ID == "" || m.Identity.Consumer != k.consumer:
		return semel.Permanent(errors.New("semel: KeepResult needs the message that the handler was given"))
	case len(result) > store.MaxResult:
		return semel.Permanent(fmt.Errorf("semel: the result has %d bytes, and at most %d are kept; keep a reference to it", len(result), store.MaxResult))
	}
	keeper, can := k.store.(store.Results[Tx])
	if !can {
		return semel.Permanent(fmt.Errorf("semel: consumer %q: its store keeps no results in a %T: %w", k.consumer, tx, semel.ErrUnsupported))
	}
	scope, err := k.scope(ctx, m.Identity.Source)
	if err != nil {
		return err
	}
	return keeper.KeepResult(ctx, tx, store.ResultOf{Scope: scope, ID: []byte(m.Identity.ID)}, result)
}

// keepingOf is the key under which contexts of handlers have a *keeping.
type keepingOf struct{}

// keeping is what KeepResult knows of the consumer whose handler calls it.
type keeping struct {
	consumer string
	store    any
	// why is why nothing can be kept; nil if it can.
	why error
	// scope is the number of a source's scope, which a batch with a mark in it has asked for.
	scope func(ctx context.Context, source string) (int64, error)
}

// keeps is what handlers of this engine find in their contexts.
func (e *engine[Tx]) keeps() *keeping {
	k := &keeping{consumer: e.config.Name, store: e.store}
	k.scope = func(ctx context.Context, source string) (int64, error) {
		return e.scopes.Number(ctx, scopes.Of{Source: source})
	}
	if !e.config.Strategy.marks() {
		k.why = fmt.Errorf("semel: consumer %q: a result is kept beside a marker, and the Strategy %v writes none: %w", e.config.Name, e.config.Strategy, semel.ErrUnsupported)
	}
	return k
}

// Result returns what KeepResult has kept for a message, such as one that Process has found
// to be a duplicate: key is its Identity. nil says that nothing is kept: it was not applied,
// its handler kept nothing, or its marker is gone; an empty result is not nil. Run, Work or
// Process has begun before, or the error is semel.ErrUnsupported; so it is where the store
// keeps no results.
func (c *Consumer[Tx]) Result(ctx context.Context, key semel.Key) ([]byte, error) {
	c.mutex.Lock()
	e := c.engine
	c.mutex.Unlock()
	if e == nil {
		return nil, fmt.Errorf("semel: consumer %q: Result is for a consumer that has begun to Run, Work or Process: %w", c.config.Name, semel.ErrUnsupported)
	}
	if key.Consumer != c.config.Name {
		return nil, fmt.Errorf("semel: consumer %q: the key is of consumer %q", c.config.Name, key.Consumer)
	}
	all, err := e.results(ctx, []resultOf{{source: key.Source, id: key.ID}})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// resultOf is whose result is looked for: that of an identity, and if it has none, of the
// former one.
type resultOf struct {
	source, id string
	former     *semel.Key
}

// resultReader is what store.Results has for every kind of transaction.
type resultReader interface {
	Results(ctx context.Context, of []store.ResultOf) ([][]byte, error)
}

// results are what is kept of these, nil for one of which nothing is.
func (e *engine[Tx]) results(ctx context.Context, of []resultOf) ([][]byte, error) {
	reader, can := e.store.(resultReader)
	if !can {
		return nil, fmt.Errorf("semel: consumer %q: its store keeps no results: %w", e.config.Name, semel.ErrUnsupported)
	}
	asked := make([]store.ResultOf, 0, len(of))
	var whose []int
	ask := func(i int, in scopes.Of, id string) error {
		scope, err := e.scopes.Number(ctx, in)
		asked, whose = append(asked, store.ResultOf{Scope: scope, ID: []byte(id)}), append(whose, i)
		return err
	}
	for i := range of {
		if err := ask(i, scopes.Of{Source: of[i].source}, of[i].id); err != nil {
			return nil, err
		}
		if f := of[i].former; f != nil {
			if err := ask(i, scopes.Of{Source: f.Source, Previous: true}, f.ID); err != nil {
				return nil, err
			}
		}
	}
	found, err := reader.Results(ctx, asked)
	if err != nil {
		return nil, err
	}
	results := make([][]byte, len(of))
	for n, i := range whose {
		if results[i] == nil {
			results[i] = found[n]
		}
	}
	return results, nil
}
