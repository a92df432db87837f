package assembly

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
)

// writing is a handler that writes down what its message causes elsewhere, after its
// statements.
func writing[Tx any](one *sqlhandler.Handler, run func(context.Context, Tx, *semel.Message) error, w *consumer.Intents[Tx]) func(context.Context, Tx, *semel.Message) error {
	if !one.HasIntents() {
		return run
	}
	return func(ctx context.Context, tx Tx, m *semel.Message) error {
		if err := run(ctx, tx, m); err != nil {
			return err
		}
		intents, err := one.Intents(m)
		if err != nil {
			return err
		}
		return w.Write(ctx, tx, m, intents...)
	}
}
