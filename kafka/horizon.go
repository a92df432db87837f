package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/retention"
	"github.com/semel-go/semel/source"
)

// horizon is source.Info.Horizon: how long a record of the topics that are read
// now may stay in them, and of the topic for dead letters, from which records are
// brought back. The topic counts in which that is longest. The brokers remove a segment
// when its newest record is older than retention.ms, and a segment takes records for
// segment.ms; with producers' times (CreateTime) a record may be dated ahead by
// message.timestamp.after.max.ms, where that is bounded. Size limits, which remove
// earlier, do not count, and tiered storage changes nothing, since retention.ms is of
// both tiers. A topic that is only compacted, or never emptied, has no horizon
// (Unlimited).
//
// It fails where the brokers cannot be reached or do not tell the settings, as for a user
// without DESCRIBE_CONFIGS on the topics; after Close its error wraps semel.ErrClosed. It
// connects if that has not happened.
func (s *Source) horizon(ctx context.Context) (source.Horizon, error) {
	if open, err := s.brokers.open(s.startBackground); err != nil {
		return source.Horizon{}, err
	} else if !open {
		return source.Horizon{}, fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, err := s.topics.lasting(ctx)
	if err != nil {
		return source.Horizon{}, err
	}
	if len(names) == 0 {
		return source.Horizon{Why: "no topic matches " + s.config.TopicPattern}, nil
	}
	response, err := retention.Request(names).RequestWith(ctx, s.brokers.client())
	if err != nil {
		return source.Horizon{}, s.brokers.unreachable(err)
	}
	all, err := retention.Read(response, func(err error, topic string) error { return explain(err, topic, s.config.Group) })
	if err != nil {
		return source.Horizon{}, err
	}
	return retention.Longest(names, all)
}

// lasting are the topics whose records may be delivered: those that are read, or match
// now, and the one for dead letters.
func (t *topics) lasting(ctx context.Context) ([]string, error) {
	names := slices.Clone(t.named())
	if t.pattern != nil {
		found, err := t.list(ctx)
		if err != nil {
			return nil, err
		}
		for topic := range found.topics {
			names = append(names, topic)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
