package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/scopes"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/intents"
)

// resultContextKey is the key of the *ResultContext in the contexts of handlers.
type resultContextKey struct{}

// ResultContext contains the data of a consumer that KeepResult needs when a handler calls KeepResult.
type ResultContext struct {
	Consumer string
	Store    any
	// Why is the reason why no result can be stored, or nil if results can be stored.
	Why error
	// Scope returns the number that the store has given to a source. The number is in the cache, because the handler's
	// batch has marked a message of the source.
	Scope func(ctx context.Context, source string) (int64, error)
}

// ResultContextOf returns the ResultContext of a handler's context, or nil for any other context.
func ResultContextOf(ctx context.Context) *ResultContext {
	k, _ := ctx.Value(resultContextKey{}).(*ResultContext)
	return k
}

func (e *Engine[Tx]) resultContext() *ResultContext {
	k := &ResultContext{Consumer: e.config.Consumer, Store: e.Store, Why: e.config.NoResults}
	k.Scope = func(ctx context.Context, source string) (int64, error) {
		return e.Scopes.Number(ctx, scopes.Of{Source: source})
	}
	return k
}

// resultOf identifies the message whose result is read, by its identity and its previous identity, if any. If
// no result is stored for the identity, the result of the previous identity is used.
type resultOf struct {
	source, id string
	former     *semel.Key
}

// ResultReader is the part of admin.Results that does not depend on the type of transactions.
type ResultReader interface {
	Results(ctx context.Context, of []admin.ResultOf) ([][]byte, error)
}

// Result returns the stored result of one message, or nil if no result is stored.
func (e *Engine[Tx]) Result(ctx context.Context, key semel.Key) ([]byte, error) {
	all, err := e.results(ctx, []resultOf{{source: key.Source, id: key.ID}})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// results returns the stored results of the given messages. The result of a message without a stored result is nil.
func (e *Engine[Tx]) results(ctx context.Context, of []resultOf) ([][]byte, error) {
	reader, can := e.Store.(ResultReader)
	if !can {
		return nil, fmt.Errorf("semel: consumer %q: its store keeps no results: %w", e.config.Consumer, semel.ErrUnsupported)
	}
	asked := make([]admin.ResultOf, 0, len(of))
	var whose []int
	ask := func(i int, in scopes.Of, id string) error {
		scope, err := e.Scopes.Number(ctx, in)
		asked, whose = append(asked, admin.ResultOf{Scope: scope, ID: []byte(id)}), append(whose, i)
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

// emit makes the store send the intents of the given messages again, including intents that were written under previous
// identities.
func (e *Engine[Tx]) emit(ctx context.Context, of []resultOf) error {
	emitter, can := e.Store.(admin.Emitter)
	if !can {
		return fmt.Errorf("semel: consumer %q: its store cannot have intents sent again: %w", e.config.Consumer, semel.ErrUnsupported)
	}
	o := admin.EmitOptions{Every: admin.EmitInterval, Windows: map[string]time.Duration{}}
	for sender, window := range e.config.SenderWindows {
		switch window {
		case calls.Always:
		case calls.Never:
			o.Windows[sender] = 1
		default:
			o.Windows[sender] = window
		}
	}
	known := map[semel.Key]bool{}
	add := func(source, id string) {
		if key := (semel.Key{Consumer: e.config.Consumer, Source: source, ID: id}); !known[key] {
			known[key] = true
			o.Causes = append(o.Causes, intents.Cause(key))
		}
	}
	for i := range of {
		add(of[i].source, of[i].id)
		if f := of[i].former; f != nil {
			add(f.Source, f.ID)
		}
	}
	did, err := emitter.Emit(ctx, o)
	e.Reporter.ReEmitted(did.Again, did.Forgotten)
	return err
}
