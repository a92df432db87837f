package assembly

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Recovery compares the store of a consumer with the offsets of its group, and sets
// one to the other; nil for a consumer that has no group: the position of a file is
// in the database of its effects. Close it.
func (a *Assembly) Recovery(c *policy.Consumer) (*kafka.Recovery, error) {
	s := a.policy.Source(c.From)
	if s == nil || s.Kafka == nil || a.policy.Store(c.Store).Redis != nil { // which keeps no positions
		return nil, nil
	}
	offsets, keeps := a.store(c.Store).tables.(source.OffsetStore)
	if !keeps {
		return nil, fmt.Errorf("consumer %s: store %s keeps no positions of partitions", c.Name, c.Store)
	}
	config, err := a.kafkaConfig(c, s, newLanes(a.options.Logger, time.Now))
	if err != nil {
		return nil, err
	}
	recovery, err := kafka.NewRecovery(config, c.Name, offsets)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: source %s: %w", c.Name, c.From, err)
	}
	return recovery, nil
}

// RecordOf writes down in a consumer's store what a person did.
func (a *Assembly) RecordOf(ctx context.Context, c *policy.Consumer, act store.Act) error {
	s := a.store(c.Store)
	return s.Failed(s.Record(ctx, act))
}
