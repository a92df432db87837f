package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// comparison is what store and group know of a partition; -1 where they know
// nothing.
type comparison struct {
	topicPartition
	store, group int64
	// marked: the group's offset was committed after the store had it.
	marked   bool
	metadata string
}

// lost reports whether the store has lost what it had.
func (c comparison) lost() bool { return c.marked && c.store < c.group }

// groupOffsets are the group's offsets of partitions, with the ids of their topics.
func groupOffsets(ctx context.Context, b *brokers, which map[topicPartition][16]byte) ([]comparison, error) {
	topics, ids := []string{}, map[string][16]byte{}
	for p, id := range which {
		if _, known := ids[p.topic]; !known {
			topics = append(topics, p.topic)
		}
		ids[p.topic] = id
	}
	all, err := groupOffsetsOf(ctx, b, topics, ids)
	return slices.DeleteFunc(all, func(c comparison) bool { _, asked := which[c.topicPartition]; return !asked }), err
}

// groupOffsetsOf are the group's offsets of topics, in their order.
func groupOffsetsOf(ctx context.Context, b *brokers, topics []string, ids map[string][16]byte) ([]comparison, error) {
	offsets, err := kadm.NewClient(b.client()).FetchOffsets(ctx, b.config.Group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err, "", b.config.Group)
	}
	var all []comparison
	for _, topic := range topics {
		for partition, o := range offsets[topic] {
			if o.Err != nil {
				return nil, explain(o.Err, topic, b.config.Group)
			}
			if o.At >= 0 {
				all = append(all, comparison{topicPartition: topicPartition{topic, partition}, store: -1, group: o.At, marked: stored.MarkedKept(o.Metadata, ids[topic]), metadata: o.Metadata})
			}
		}
	}
	slices.SortFunc(all, func(a, b comparison) int { return a.topicPartition.compare(b.topicPartition) })
	return all, nil
}

// mostNamed is how many partitions an error names.
const mostNamed = 8

// explain says which partitions the store is behind in, and what to do.
func (k *positions) explain(behind []comparison) error {
	var parts []string
	records := int64(0)
	for i, c := range behind {
		records += c.group - max(c.store, 0)
		switch {
		case i == mostNamed:
			parts = append(parts, fmt.Sprintf("and %d partitions more", len(behind)-i))
		case i > mostNamed:
		case c.store < 0:
			parts = append(parts, fmt.Sprintf("topic %s, partition %d: the store knows nothing, the group is at %d", c.topic, c.partition, c.group))
		default:
			parts = append(parts, fmt.Sprintf("topic %s, partition %d: the store is at %d, the group at %d: %d records", c.topic, c.partition, c.store, c.group, c.group-c.store))
		}
	}
	return fmt.Errorf("kafka: the store of consumer %s is behind group %s: its database was restored from a backup, or failed over to a server that lacks its last commits, or it is another one. The effects of up to %d records are missing, and nothing more is read. %s. To have them again, stop all processes of the consumer and set the group back to where the store is: 'semel positions plan' shows what would be done, 'semel positions reset' does it, and messages that took effect already are duplicates then. To leave those records out, use 'semel positions accept'. A Go program without a policy uses kafka.Recovery (Compare, Reset, Accept), or these commands with --store, --consumer, --brokers, --topics and --group: %w",
		k.consumer, k.config.Group, records, strings.Join(parts, "; "), semel.ErrBehind)
}
