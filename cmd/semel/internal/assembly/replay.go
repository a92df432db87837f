package assembly

import (
	"context"
	"log/slog"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/source"
)

// Origin is where the messages of a consumer are read again: beside its own source, whose
// position, or group, it leaves alone.
func (a *Assembly) Origin(c *policy.Consumer) (replay.Origin, error) {
	s := a.policy.Source(c.From)
	logger := a.options.Logger.With(slog.String("consumer", c.Name), slog.String("source", s.Name))
	switch {
	case s.Kafka != nil:
		config, err := a.kafkaConfig(c, s, newLanes(logger, time.Now))
		if err != nil {
			return nil, err
		}
		return replay.NewTopics(config)
	case s.Webhook != nil:
		return nil, a.policy.Fault("consumers."+c.Name+".from", "webhooks cannot be read again: what came is in the inbox", "run rows again with semel inbox retry")
	case s.File.Path == shape.Stdin:
		return nil, a.policy.Fault("consumers."+c.Name+".from", "standard input cannot be read again", "write its messages to a file, and name that")
	}
	format, err := formatOf(s.File.Format)
	if err != nil {
		return nil, err
	}
	notice := func(what string) { logger.Warn(what) }
	return replay.NewFile(s.File.Path, a.lane(s.File.Path), file.Options{Format: format, MaxLine: int(s.File.MaxLine), Notice: notice}), nil
}

// Replayer makes the consumer of this name with another source than its own, whose messages
// are part of a replay. What would go to the dead letters is parked, and no duplicate has
// anything sent again.
func (a *Assembly) Replayer(ctx context.Context, name string, src source.Source, r semel.Replay) (Consumer, error) {
	c := *a.policy.Consumer(name)
	if calls := c.Handler.HTTP != nil || c.Handler.Kafka != nil; calls && !r.Effects && !c.Replay.Looks {
		return nil, a.policy.Fault("consumers."+name+".replay.effects", "the replay has no effects outside of the store, and the handler is one", "start another with effects: real")
	}
	if err := a.enter(ctx, &c); err != nil {
		return nil, err
	}
	r.Generation = *c.Generation()
	a.options.Replay = &r
	c.ParkDeadLetters()
	c.ReEmitIntents = false
	return a.consumer(ctx, &c, src)
}
