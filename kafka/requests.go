package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Timestamps by which brokers are asked for the ends of a partition.
const (
	atEnd   = -1
	atBegin = -2
)

// entryOf is the entry of a topic among those of a request, a new one where it has
// none yet. index is where those stand that have one.
func entryOf[T any](index map[string]int, topic string, all *[]T, fresh func() T) *T {
	at, known := index[topic]
	if !known {
		at = len(*all)
		index[topic] = at
		*all = append(*all, fresh())
	}
	return &(*all)[at]
}

// listOffsets asks for offsets; a partition that has an error is left out.
func (b *brokers) listOffsets(ctx context.Context, partitions []topicPartition, at int64, committed bool) (map[topicPartition]int64, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	if committed {
		request.IsolationLevel = 1
	}
	topics := map[string]int{}
	for _, p := range partitions {
		topic := entryOf(topics, p.topic, &request.Topics, kmsg.NewListOffsetsRequestTopic)
		topic.Topic = p.topic
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = p.partition, at
		topic.Partitions = append(topic.Partitions, partition)
	}
	response, err := request.RequestWith(ctx, b.client())
	if err != nil {
		return nil, err
	}
	found := map[topicPartition]int64{}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if kerr.ErrorForCode(p.ErrorCode) == nil {
				found[topicPartition{topic.Topic, p.Partition}] = p.Offset
			}
		}
	}
	return found, nil
}

// more reports whether a fetch finds anything behind where a lane has got to.
// The end of a log may lie behind the last thing in it, since compaction removes
// tombstones and the control records of transactions; or a fetch is slow.
func (b *brokers) more(ctx context.Context, r lanePosition) (bool, error) {
	leader, err := b.leader(ctx, r.topicPartition)
	if err != nil {
		return false, err
	}
	response, err := b.fetchAt(r).RequestWith(ctx, leader)
	if err != nil {
		return false, err
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return false, err
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return false, err
			}
			if len(p.RecordBatches) > 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// noLeaderError is why no broker can be asked for a partition.
type noLeaderError struct{ err error }

func (e noLeaderError) Error() string { return "no broker is its leader: " + e.err.Error() }
func (e noLeaderError) Unwrap() error { return e.err }

// leader is who is asked for a partition.
func (b *brokers) leader(ctx context.Context, p topicPartition) (*kgo.Broker, error) {
	known, err := kadm.NewClient(b.client()).Metadata(ctx, p.topic)
	if err != nil {
		return nil, err
	}
	topic := known.Topics[p.topic]
	partition, there := topic.Partitions[p.partition]
	switch {
	case topic.Err != nil:
		return nil, noLeaderError{topic.Err}
	case !there:
		return nil, noLeaderError{kerr.UnknownTopicOrPartition}
	case partition.Leader < 0:
		return nil, noLeaderError{kerr.LeaderNotAvailable}
	}
	return b.client().Broker(int(partition.Leader)), nil
}

// fetchAt asks for the least there is at a place.
func (b *brokers) fetchAt(r lanePosition) *kmsg.FetchRequest {
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID, request.SessionEpoch, request.MaxBytes = -1, -1, 1
	if !b.config.ReadUncommitted {
		request.IsolationLevel = 1
	}
	topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	topic.Topic, topic.TopicID = r.topic, r.topicID
	partition.Partition, partition.FetchOffset, partition.PartitionMaxBytes = r.partition, r.at, 1
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	return request
}
