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
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// handlers are the compiled statements of a consumer.
type handlers struct {
	// byType has those for every message under the empty type, alone.
	byType map[string]*sqlhandler.Handler
	// steps are in their order, where the handler is made of them.
	steps []step
}

// step is a part of a handler that takes effect by itself.
type step struct {
	name    string
	handler *sqlhandler.Handler
}

// runs is what runs the statements of a message in a transaction.
type runs[Tx any] = func(context.Context, Tx, *semel.Message) error

// handled runs each statement by itself.
func handled(one *sqlhandler.Handler) runs[*sql.Tx] { return one.Handle }

// queued queues the statements.
func queued(one *sqlhandler.Handler) runs[*pgxstore.Queue] { return one.Queue }

// made makes the consumer of these handlers, as one of them runs in a store's transaction.
func made[Tx any](st store.TxStore[Tx], h handlers, run func(*sqlhandler.Handler) runs[Tx], w *consumer.Intents[Tx], config consumer.Config) (Consumer, error) {
	as := func(one *sqlhandler.Handler) runs[Tx] { return writing(one, run(one), w) }
	if h.steps == nil {
		return consumer.New(st, dispatch(h.byType, as), config)
	}
	steps := make([]consumer.Step[Tx], len(h.steps))
	for i, s := range h.steps {
		run := as(s.handler)
		steps[i] = consumer.Step[Tx]{Name: s.name, Run: func(ctx context.Context, tx Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
			return nil, run(ctx, tx, m)
		}}
	}
	return consumer.NewSteps(st, steps, config)
}

// dispatch makes one handler of all.
func dispatch[Tx any](h map[string]*sqlhandler.Handler, as func(*sqlhandler.Handler) runs[Tx]) runs[Tx] {
	if only := h[""]; only != nil {
		return as(only)
	}
	byType := map[string]runs[Tx]{}
	for name, one := range h {
		byType[name] = as(one)
	}
	return consumer.ByType(byType)
}

// handlers compiles a consumer's statements and lets the database look at them.
func (a *Assembly) handlers(ctx context.Context, c *policy.Consumer, st *Store) (handlers, error) {
	all := handlers{byType: map[string]*sqlhandler.Handler{}}
	for _, s := range c.Handlers() {
		h, err := sqlhandler.Compile(c.Dialect(st.policy), a.statements(c, s, st))
		if err != nil {
			return all, fmt.Errorf("consumer %s: %s: %w", c.Name, s.At, err)
		}
		if i, err := st.try(ctx, h, c); err != nil && st.Classify(err) == store.ClassPermanent {
			return all, a.policy.Fault(fmt.Sprintf("consumers.%s.%s.statements[%d]", c.Name, s.At, i),
				"the database refuses the statement: "+st.explain(err).Error(), "correct it, or create what is missing, such as with setup: FILE.sql at the store")
		}
		if s.Step != "" {
			all.steps = append(all.steps, step{s.Step, h})
			continue
		}
		all.byType[s.Type] = h
	}
	return all, nil
}

func (a *Assembly) statements(c *policy.Consumer, all policy.Statements, store *Store) sqlhandler.Config {
	config := sqlhandler.Config{Step: all.Step, Generation: c.Generation()}
	for _, p := range all.Params {
		config.Params = append(config.Params, sqlhandler.Param(p))
	}
	for _, s := range all.Statements {
		text := s.SQL
		if s.Upsert != nil && store.policy.SQLite != nil {
			text, _ = s.Upsert.NamedSQLite() // its faults are found when the policy is read
		}
		config.Statements = append(config.Statements, sqlhandler.Statement{SQL: text, Upsert: s.Upsert != nil, Rows: s.Rows, Otherwise: otherwise(s.Otherwise)})
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
	warn := a.warnOnce(c.Name, all)
	config.NoEffect = func(m *semel.Message, i int) {
		if all.Statements[i].Upsert == nil { // which meets late versions, and leaves the row
			warn(m, i)
		}
	}
	return config
}

// warnOnce warns the first time that each statement changes no row.
func (a *Assembly) warnOnce(consumer string, all policy.Statements) func(*semel.Message, int) {
	once := make([]sync.Once, len(all.Statements))
	logger := a.options.Logger.With(slog.String("consumer", consumer))
	for name, is := range map[string]string{"type": all.Type, "step": all.Step} {
		if is != "" { // never both
			logger = logger.With(slog.String(name, is))
		}
	}
	return func(m *semel.Message, i int) {
		once[i].Do(func() {
			logger.Warn("a statement changed no row; its message counts as applied (set rows: to judge it)",
				slog.Int("statement", i+1), slog.String("id", legible.Printable(m.Identity.ID)))
		})
	}
}
