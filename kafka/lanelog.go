package kafka

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// held is a partition and the group's offset in it, negative if the group has none.
type held struct {
	topicPartition
	next int64
}

// logPartitions logs in one line which partitions the group has assigned or taken away, and at
// which offsets. A line names at most mostNamed of them and counts the others.
func logPartitions(c *Config, what string, all []held) {
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b held) int { return a.compare(b.topicPartition) })
	var named []string
	for _, h := range all[:min(len(all), mostNamed)] {
		if h.next < 0 {
			named = append(named, h.lane()+"@start") // the group has no offset
			continue
		}
		named = append(named, fmt.Sprintf("%s@%d", h.lane(), h.next))
	}
	c.Logger.Info(what, "group", c.Group, "count", len(all), "partitions", named)
}

// logBegin logs the partitions that the group has assigned, and where each begins.
func (g *group) logBegin(offsets map[string]map[int32]kgo.Offset) {
	var all []held
	for topic, partitions := range offsets {
		for partition, offset := range partitions {
			all = append(all, held{topicPartition{topic, partition}, offset.EpochOffset().Offset})
		}
	}
	logPartitions(g.config, "partitions assigned", all)
}

// heldAt is a lane with the offset that is committed for it.
func (ls *lanes) heldAt(l *lane) held {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return held{l.topicPartition, l.committed.offset}
}

// LogValue implements slog.LogValuer: the topics and the group.
func (s *Source) LogValue() slog.Value {
	topics := slog.Any("topics", s.config.Topics)
	if s.config.TopicPattern != "" {
		topics = slog.String("topic_pattern", s.config.TopicPattern)
	}
	return slog.GroupValue(topics, slog.String("group", s.config.Group))
}
