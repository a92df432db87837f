package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Timestamps by which brokers are asked for the ends of a partition.
const (
	atEnd   = -1
	atBegin = -2
)

// askEnds asks where own partitions end and, of those of which it is not known
// yet, begin. What is stable is asked for last: if it is before the end, a
// transaction is open.
func (s *Source) askEnds(ctx context.Context) error {
	own, fresh := s.ownPlaces()
	ends, err := s.listOffsets(ctx, own, atEnd, false)
	if err != nil {
		return err
	}
	stable := ends
	if !s.config.ReadUncommitted {
		if stable, err = s.listOffsets(ctx, own, atEnd, true); err != nil {
			return err
		}
	}
	begins, err := s.listOffsets(ctx, fresh, atBegin, false)
	if err != nil {
		return err
	}
	s.noteEnds(begins, ends, stable)
	return nil
}

// ownPlaces are the partitions of living lanes; fresh are those that have got
// nowhere yet.
func (s *Source) ownPlaces() (own, fresh []place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.order {
		if l.gone {
			continue
		}
		own = append(own, l.place)
		if l.reached() < 0 {
			fresh = append(fresh, l.place)
		}
	}
	return own, fresh
}

// under is the entry of a topic among those of a request, a new one where it has
// none yet. index is where those stand that have one.
func under[T any](index map[string]int, topic string, all *[]T, fresh func() T) *T {
	at, known := index[topic]
	if !known {
		at = len(*all)
		index[topic] = at
		*all = append(*all, fresh())
	}
	return &(*all)[at]
}

// listOffsets asks for offsets; a partition that has an error is left out.
func (s *Source) listOffsets(ctx context.Context, places []place, at int64, committed bool) (map[place]int64, error) {
	if len(places) == 0 {
		return nil, nil
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	if committed {
		request.IsolationLevel = 1
	}
	topics := map[string]int{}
	for _, p := range places {
		topic := under(topics, p.topic, &request.Topics, kmsg.NewListOffsetsRequestTopic)
		topic.Topic = p.topic
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = p.partition, at
		topic.Partitions = append(topic.Partitions, partition)
	}
	response, err := request.RequestWith(ctx, s.side)
	if err != nil {
		return nil, err
	}
	found := map[place]int64{}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if kerr.ErrorForCode(p.ErrorCode) == nil {
				found[place{topic.Topic, p.Partition}] = p.Offset
			}
		}
	}
	return found, nil
}

func (s *Source) noteEnds(begins, ends, stable map[place]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, l := range s.order {
		if at, known := begins[l.place]; known && l.reached() < 0 {
			l.delivered = at // the group has no offset, so this is where the lane begins
		}
		if at, known := ends[l.place]; known {
			l.end = at
		}
		if at, known := stable[l.place]; known {
			l.stable = at
		}
		s.noteHeldUp(l, now)
	}
}
