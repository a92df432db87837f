package assembly

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/contract"
)

// Replayer makes the consumer of this name with another source than its own, whose messages
// are part of a replay. What would go to the dead letters is parked, and no duplicate has
// anything sent again.
func (a *Assembly) Replayer(ctx context.Context, name string, source contract.Source, r semel.Replay) (Consumer, error) {
	c := *a.policy.Consumer(name)
	if calls := c.Handler.HTTP != nil || c.Handler.Kafka != nil; calls && !r.Effects && !c.Replay.Looks {
		return nil, a.policy.Fault("consumers."+name+".replay.effects", "the replay has no effects outside of the store, and the handler is one", "start another with effects: real")
	}
	a.options.Replay = &r
	c.ParkDeadLetters()
	c.Duplicates = consumer.DuplicatesSkip
	return a.consumer(ctx, &c, source)
}
