package proof

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Poll calls the function do with the records of a topic, as a member of a group, until ctx ends or do returns an
// error. Services without Semel often have a loop like Poll.
func Poll(ctx context.Context, brokers []string, group, topic string, session time.Duration, most int, do func(*kgo.Client, []*kgo.Record) error) error {
	broker, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(session), kgo.HeartbeatInterval(session/3),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer broker.CloseAllowingRebalance()
	for ctx.Err() == nil {
		if err := do(broker, broker.PollRecords(ctx, most).Records()); err != nil {
			return err
		}
		broker.AllowRebalance()
	}
	return nil
}
