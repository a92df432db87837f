package assembly

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/legible"
)

// Consumer is a consumer of a policy, whatever its transactions are.
type Consumer interface {
	Run(ctx context.Context) error
	Counts() semel.Counts
	Left() []semel.Left
	// Ready is false, with the reason, while something stands still.
	Ready() (bool, string)
	// Work works on rows of the inbox; see consumer.Consumer.
	Work(ctx context.Context, numbers ...int64) error
}

// consumer makes a consumer; source may be nil where it only works on rows.
func (a *Assembly) consumer(ctx context.Context, c *policy.Consumer, source contract.Source) (Consumer, error) {
	store := a.store(c.Store)
	if c.Handler.HTTP != nil {
		call, err := a.caller(c)
		if err != nil {
			return nil, err
		}
		a.options.Logger.Info("of a call whose outcome nobody knows: "+windowSays(c), "consumer", c.Name)
		return store.leased(call, a.config(c, source))
	}
	handlers, err := a.handlers(ctx, c, store)
	if err != nil {
		return nil, err
	}
	if err := a.checkKey(ctx, c, store); err != nil {
		return nil, err
	}
	consumer, err := store.consumer(ctx, handlers, c, a.config(c, source))
	switch {
	case errors.Is(err, semel.ErrSchema):
		return nil, a.policy.Fault("consumers."+c.Name+".dedup", err.Error(), "see docs/adoption.md")
	case err != nil && c.Dedup != nil:
		return nil, store.failed(err)
	}
	return consumer, err
}

// windowSays is what becomes of a call whose outcome nobody knows.
func windowSays(c *policy.Consumer) string {
	switch window := c.Handler.HTTP.Window; window {
	case consumer.WindowAlways:
		return "it is made again under the same key, which the endpoint never forgets"
	case consumer.WindowNever:
		return "none is made again, since the endpoint knows no keys: its message is parked, for semel inbox resolve"
	default:
		return "it is made again under the same key for " + legible.Span(window-c.Timeout) + " from the first call; after that its message is parked, for semel inbox resolve"
	}
}

func (a *Assembly) config(c *policy.Consumer, source contract.Source) consumer.Config {
	config := c.Config()
	config.Source = source
	config.IdleExit = a.options.IdleExit
	config.Logger = a.options.Logger
	config.Observers = a.options.Observers
	return config
}

// otherwise is OtherwiseUnmet also where the consumer does the same then: that
// a server can judge by itself.
func otherwise(word string, unmet consumer.Then) sqlhandler.Otherwise {
	switch {
	case word == "park" && unmet == consumer.ThenPark, word == "discard" && unmet == consumer.ThenDiscard:
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
