package assembly

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/kafka"
)

// Letters calls each with the records of a topic of dead letters, on the brokers of the
// consumer's source, up to where the topic ends now.
func (a *Assembly) Letters(ctx context.Context, c *policy.Consumer, topic string, each func(kafka.Letter) error) error {
	s := a.policy.Source(c.From)
	if s == nil || s.Kafka == nil {
		return fmt.Errorf("consumer %s reads no topic, and has no topic of dead letters", c.Name)
	}
	config, err := a.kafkaConfig(c, s, newLanes(a.options.Logger, time.Now))
	if err != nil {
		return err
	}
	if err := kafka.ReadLetters(ctx, config, topic, each); err != nil {
		return fmt.Errorf("consumer %s: source %s: %w", c.Name, c.From, err)
	}
	return nil
}

// Positions are how far the store of a consumer knows its partitions to be done.
func (a *Assembly) Positions(ctx context.Context, c *policy.Consumer) (map[string]map[int32]int64, error) {
	recovery, err := a.Recovery(c)
	if err != nil || recovery == nil {
		return nil, err
	}
	defer recovery.Close()
	all, err := recovery.Compare(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]map[int32]int64{}
	for _, p := range all {
		if at[p.Topic] == nil {
			at[p.Topic] = map[int32]int64{}
		}
		at[p.Topic][p.Partition] = p.Store
	}
	return at, nil
}
