package assembly

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/httphandler"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
)

// asker is a handler that calls out, and what it was answered.
type asker = func(context.Context, *semel.Message) (*sqlhandler.Answer, error)

// answered makes the consumer of an endpoint whose answers name effects.
func (a *Assembly) answered(ctx context.Context, c *policy.Consumer, st *Store, endpoint *httphandler.Handler, config consumer.Config) (Consumer, error) {
	effects, err := sqlhandler.CompileEffects(c.Dialect(st.policy), named(c), c.Handler.HTTP.Effects.Intents, a.warnNamed(c.Name))
	if err != nil {
		return nil, fmt.Errorf("consumer %s: handler.http.effects: %w", c.Name, err)
	}
	name, err := effects.Try(func(h *sqlhandler.Handler) (int, error) { return st.try(ctx, h, c) })
	if err != nil && st.Classify(err) == store.ClassPermanent {
		return nil, a.policy.Fault(fmt.Sprintf("consumers.%s.handler.http.effects.statements.%s", c.Name, name),
			"the database refuses the statement: "+st.explain(err).Error(), "correct it, or create what is missing, such as with setup: FILE.sql at the store")
	}
	if c.Handler.HTTP.Pure {
		a.options.Logger.Info("the endpoint only answers: it is called without a claim, as often as it takes, and the first answer that commits counts", "consumer", c.Name)
	}
	return st.answered(func(ctx context.Context, m *semel.Message) (*sqlhandler.Answer, error) {
		answer, err := endpoint.Ask(ctx, m)
		if err != nil || answer == nil {
			return &sqlhandler.Answer{}, err
		}
		return effects.Read(answer, m)
	}, effects, config)
}

// applying applies an answer: its statements, then its intents, then its result.
func applying[Tx any](run func(context.Context, Tx, *sqlhandler.Answer, *semel.Message) error, w *consumer.Intents[Tx]) func(context.Context, Tx, *sqlhandler.Answer, *semel.Message) error {
	return func(ctx context.Context, tx Tx, answer *sqlhandler.Answer, m *semel.Message) error {
		if err := run(ctx, tx, answer, m); err != nil {
			return err
		}
		if len(answer.Intents) > 0 {
			if err := w.Write(ctx, tx, m, answer.Intents...); err != nil {
				return err
			}
		}
		if answer.Result == nil {
			return nil
		}
		return consumer.KeepResult(ctx, tx, m, answer.Result)
	}
}

// named are the statements that the policy declares.
func named(c *policy.Consumer) (all []sqlhandler.Named) {
	for _, s := range c.Handler.HTTP.Effects.Statements {
		one := sqlhandler.Named{Name: s.Name, Statement: sqlhandler.Statement{SQL: s.SQL, Rows: s.Rows, Otherwise: otherwise(s.Otherwise)}}
		for _, p := range s.Params {
			one.Params = append(one.Params, sqlhandler.TypedParam(p))
		}
		all = append(all, one)
	}
	return all
}

// warnNamed warns the first time that a statement of this name changes no row.
func (a *Assembly) warnNamed(consumer string) func(*semel.Message, string) {
	var warned sync.Map
	logger := a.options.Logger.With(slog.String("consumer", consumer))
	return func(m *semel.Message, name string) {
		if _, before := warned.LoadOrStore(name, true); !before {
			logger.Warn("a statement of an answer changed no row; its message counts as applied (set rows: to judge it)",
				slog.String("statement", name), slog.String("id", legible.Printable(m.Identity.ID)))
		}
	}
}
