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
)

// Consumer is a consumer of a policy.
type Consumer = semel.Consumer[*sql.Tx]

// consumer makes a consumer; source may be nil where it only retries rows.
func (a *Assembly) consumer(ctx context.Context, c *policy.Consumer, source semel.Source) (*Consumer, error) {
	handler, err := sqlhandler.Compile(sqlhandler.SQLite(), a.handler(c))
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	store := a.store(c.Store)
	if i, err := handler.Try(ctx, store.db); err != nil && store.Classify(err) == semel.ClassPermanent {
		return nil, a.policy.Fault(fmt.Sprintf("consumers.%s.handler.sql.statements[%d]", c.Name, i),
			"the database refuses the statement: "+err.Error(), "correct it, or create what is missing, such as with setup: FILE.sql at the store")
	}
	return semel.New(store.Store, handler.Handle, a.config(c, source))
}

func (a *Assembly) config(c *policy.Consumer, source semel.Source) semel.Config {
	config := c.Config()
	config.Source = source
	config.IdleExit = a.options.IdleExit
	config.Logger = a.options.Logger
	return config
}

func (a *Assembly) handler(c *policy.Consumer) sqlhandler.Config {
	var config sqlhandler.Config
	for _, p := range c.Handler.SQL.Params {
		config.Params = append(config.Params, sqlhandler.Param(p))
	}
	for _, s := range c.Handler.SQL.Statements {
		config.Statements = append(config.Statements, sqlhandler.Statement{SQL: s.SQL, Rows: s.Rows, Otherwise: otherwise(s.Otherwise)})
	}
	if key := c.Strategy.BusinessKey; key != nil {
		config.Violates = violates(key.Constraint)
	}
	config.NoEffect = a.warnOnce(c.Name, len(config.Statements))
	return config
}

func otherwise(word string) sqlhandler.Otherwise {
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
