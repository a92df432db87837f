package assembly

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/source"
)

// Consumer is a consumer of a policy, whatever its transactions are.
type Consumer interface {
	Run(ctx context.Context) error
	Counts() semel.Counts
	Unfinished() []semel.Unfinished
	// Ready is false, with the reason, while something stands still.
	Ready() (bool, string)
	// Alive is false, with the reason, while it neither works nor pauses by decision.
	Alive() (bool, string)
	// StoreDown is since when its store has not worked, and why; zero while it does.
	StoreDown() (since time.Time, why string)
	// Load is what it has in hand.
	Load() measure.Load
	// Preview says what would become of deliveries; see consumer.Consumer.
	Preview(ctx context.Context, all []source.Delivery) ([]admin.Prediction, error)
	// Work works on rows of the inbox; see consumer.Consumer.
	Work(ctx context.Context, numbers ...int64) error
}

// consumer makes a consumer; source may be nil where it only works on rows.
func (a *Assembly) consumer(ctx context.Context, c *policy.Consumer, src source.Source) (Consumer, error) {
	if s := a.policy.Store(c.Store); s.Redis != nil {
		return a.keyed(ctx, c, s, src)
	}
	store := a.store(c.Store)
	switch {
	case c.Handler.Kafka != nil:
		publish, err := a.publisher(ctx, c)
		if err != nil {
			return nil, err
		}
		return store.leased(publish, a.config(c, src))
	case c.Handler.HTTP != nil:
		endpoint, err := a.endpoint(c)
		switch {
		case err != nil:
			return nil, err
		case c.Handler.HTTP.Effects != nil:
			return a.answered(ctx, c, store, endpoint, a.config(c, src))
		}
		if !c.Handler.HTTP.NoKey {
			a.tellWindow(c, "its message is parked, for semel "+boxOf(c)+" resolve")
		}
		return store.leased(func(ctx context.Context, _ consumer.Call, m *semel.Message) error { return endpoint.Handle(ctx, m) }, a.config(c, src))
	}
	handlers, err := a.handlers(ctx, c, store)
	if err != nil {
		return nil, err
	}
	if err := a.checkKey(ctx, c, store); err != nil {
		return nil, err
	}
	consumer, err := store.consumer(ctx, handlers, c, a.config(c, src))
	switch {
	case errors.Is(err, semel.ErrSchema):
		return nil, a.policy.Fault("consumers."+c.Name+".dedup", err.Error(), "see docs/adoption.md")
	case err != nil && c.Dedup != nil:
		return nil, store.Failed(err)
	}
	return consumer, err
}

func (a *Assembly) config(c *policy.Consumer, src source.Source) consumer.Config {
	config := c.Config()
	config.Source, config.Replay = src, a.options.Replay
	config.SenderWindows = a.policy.SenderWindows(c)
	config.IdleExit, config.MayEnd = a.options.IdleExit, a.mayEnd(c)
	if c.Rebuilds() {
		config.IdleExit, config.MayEnd = 0, nil
	}
	config.Logger = a.options.Logger
	config.Observers = a.options.Observers
	config.AuditKey = []byte(a.policy.Audit.Key)
	if a.options.Recorder != nil {
		config.Recorder = a.options.Recorder(c.Name)
	}
	return config
}

// otherwise is how a message ends whose statement changed another number of rows. What a policy
// says of a statement is a decision, and no failure for the circuit breaker, also where on_precondition
// says the same.
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
