package assembly

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/pgxstore"
)

// handlers are the compiled statements of a consumer, by type; those for every
// message have the empty type and are alone.
type handlers map[string]*sqlhandler.Handler

// handle is the consumer's handler where each statement runs by itself.
func (h handlers) handle(w *consumer.Intents[*sql.Tx]) func(context.Context, *sql.Tx, *semel.Message) error {
	return dispatch(h, func(one *sqlhandler.Handler) func(context.Context, *sql.Tx, *semel.Message) error {
		return writing(one, one.Handle, w)
	})
}

// queue is the consumer's handler where statements are queued.
func (h handlers) queue(w *consumer.Intents[*pgxstore.Queue]) func(context.Context, *pgxstore.Queue, *semel.Message) error {
	return dispatch(h, func(one *sqlhandler.Handler) func(context.Context, *pgxstore.Queue, *semel.Message) error {
		return writing(one, one.Queue, w)
	})
}

// dispatch makes one handler of all.
func dispatch[Tx any](h handlers, as func(*sqlhandler.Handler) func(context.Context, Tx, *semel.Message) error) func(context.Context, Tx, *semel.Message) error {
	if only := h[""]; only != nil {
		return as(only)
	}
	byType := map[string]func(context.Context, Tx, *semel.Message) error{}
	for name, one := range h {
		byType[name] = as(one)
	}
	return consumer.ByType(byType)
}

// handlers compiles a consumer's statements and lets the database look at them.
func (a *Assembly) handlers(ctx context.Context, c *policy.Consumer, store *Store) (handlers, error) {
	all := handlers{}
	for _, s := range c.Handlers() {
		h, err := sqlhandler.Compile(c.Dialect(store.policy), a.statements(c, s, store))
		if err != nil {
			return nil, fmt.Errorf("consumer %s: %s: %w", c.Name, s.At, err)
		}
		if i, err := store.try(ctx, h, c); err != nil && store.Classify(err) == contract.ClassPermanent {
			return nil, a.policy.Fault(fmt.Sprintf("consumers.%s.%s.statements[%d]", c.Name, s.At, i),
				"the database refuses the statement: "+store.explain(err).Error(), "correct it, or create what is missing, such as with setup: FILE.sql at the store")
		}
		all[s.Type] = h
	}
	return all, nil
}

func (a *Assembly) statements(c *policy.Consumer, all policy.Statements, store *Store) sqlhandler.Config {
	var config sqlhandler.Config
	for _, p := range all.Params {
		config.Params = append(config.Params, sqlhandler.Param(p))
	}
	for _, s := range all.Statements {
		text := s.SQL
		if s.Upsert != nil && store.policy.SQLite != nil {
			text, _ = s.Upsert.NamedSQLite() // its faults are found when the policy is read
		}
		config.Statements = append(config.Statements, sqlhandler.Statement{SQL: text, Upsert: s.Upsert != nil, Rows: s.Rows, Otherwise: otherwise(s.Otherwise, c.OnUnmet)})
	}
	if key := c.Strategy.BusinessKey; key != nil {
		config.Violates = store.violates(key.Constraint)
	}
	for _, n := range all.Intents {
		one := sqlhandler.Intent{To: n.To, Purpose: n.Purpose, Type: n.Type, Recipient: n.Recipient, Key: n.Key}
		for _, p := range n.Body {
			one.Body = append(one.Body, sqlhandler.Param(p))
		}
		config.Intents = append(config.Intents, one)
	}
	warn := a.warnOnce(c.Name, all.Type, len(config.Statements))
	config.NoEffect = func(m *semel.Message, i int) {
		if all.Statements[i].Upsert == nil { // which meets late versions, and leaves the row
			warn(m, i)
		}
	}
	return config
}

// warnOnce warns the first time that each statement changes no row.
func (a *Assembly) warnOnce(consumer, kind string, statements int) func(*semel.Message, int) {
	once := make([]sync.Once, statements)
	logger := a.options.Logger.With(slog.String("consumer", consumer))
	if kind != "" {
		logger = logger.With(slog.String("type", kind))
	}
	return func(m *semel.Message, i int) {
		once[i].Do(func() {
			logger.Warn("a statement changed no row; its message counts as applied (set rows: to judge it)",
				slog.Int("statement", i+1), slog.String("id", legible.Printable(m.Identity.ID)))
		})
	}
}
