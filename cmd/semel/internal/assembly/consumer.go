package assembly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
)

// Consumer is a consumer of a policy, whatever its transactions are.
type Consumer interface {
	Run(ctx context.Context) error
	Counts() semel.Counts
	// Retry runs a row's message again; see semel.Consumer.
	Retry(ctx context.Context, row semel.StoredRow, act semel.Act) error
}

// consumer makes a consumer; source may be nil where it only retries rows.
func (a *Assembly) consumer(ctx context.Context, c *policy.Consumer, source semel.Source) (Consumer, error) {
	store := a.store(c.Store)
	handler, err := sqlhandler.Compile(store.policy.Dialect(), a.handler(c, store))
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	if i, err := store.try(ctx, handler); err != nil && store.Classify(err) == semel.ClassPermanent {
		return nil, a.policy.Fault(fmt.Sprintf("consumers.%s.handler.sql.statements[%d]", c.Name, i),
			"the database refuses the statement: "+store.explain(err).Error(), "correct it, or create what is missing, such as with setup: FILE.sql at the store")
	}
	consumer, err := store.consumer(ctx, handler, c, a.config(c, source))
	switch {
	case errors.Is(err, semel.ErrSchema):
		return nil, a.policy.Fault("consumers."+c.Name+".dedup", err.Error(), "see docs/adoption.md")
	case err != nil && c.Dedup != nil:
		return nil, store.failed(err)
	}
	return consumer, err
}

func (a *Assembly) config(c *policy.Consumer, source semel.Source) semel.Config {
	config := c.Config()
	config.Source = source
	config.IdleExit = a.options.IdleExit
	config.Logger = a.options.Logger
	return config
}

func (a *Assembly) handler(c *policy.Consumer, store *Store) sqlhandler.Config {
	var config sqlhandler.Config
	for _, p := range c.Handler.SQL.Params {
		config.Params = append(config.Params, sqlhandler.Param(p))
	}
	for _, s := range c.Handler.SQL.Statements {
		config.Statements = append(config.Statements, sqlhandler.Statement{SQL: s.SQL, Rows: s.Rows, Otherwise: otherwise(s.Otherwise, c.OnUnmet)})
	}
	if key := c.Strategy.BusinessKey; key != nil {
		config.Violates = store.violates(key.Constraint)
	}
	config.NoEffect = a.warnOnce(c.Name, len(config.Statements))
	return config
}

// otherwise is OtherwiseUnmet also where the consumer does the same then: that
// a server can judge by itself.
func otherwise(word string, unmet semel.Then) sqlhandler.Otherwise {
	switch {
	case word == "park" && unmet == semel.ThenPark, word == "discard" && unmet == semel.ThenDiscard:
		return sqlhandler.OtherwiseUnmet
	}
	switch word {
	case "park":
		return sqlhandler.OtherwisePark
	case "discard":
		return sqlhandler.OtherwiseDiscard
	case "fail":
		return sqlhandler.OtherwiseFail
	default:
		return sqlhandler.OtherwiseUnmet
	}
}

// warnOnce warns the first time that each statement changes no row.
func (a *Assembly) warnOnce(consumer string, statements int) func(*semel.Message, int) {
	once := make([]sync.Once, statements)
	return func(m *semel.Message, i int) {
		once[i].Do(func() {
			a.options.Logger.Warn("a statement changed no row; its message counts as applied (set rows: to judge it)",
				slog.String("consumer", consumer), slog.Int("statement", i+1), slog.String("id", semel.Printable(m.Identity.ID)))
		})
	}
}
