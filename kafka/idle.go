package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Idle implements contract.Idler: the source is idle when each of its lanes is at
// its stable end, which is where an open transaction begins, or the end of the
// log. Left are lanes that an open transaction holds up and, as faults, those
// that stand still. A member without lanes is idle.
func (s *Source) Idle(ctx context.Context) (bool, []semel.Left, error) {
	if settled, err := s.topicsSettled(ctx); !settled {
		return false, nil, err
	}
	before := s.tenure()
	if !before.placed {
		return false, nil, nil
	}
	if err := s.askEnds(ctx); err != nil {
		return false, nil, fmt.Errorf("kafka: where the partitions end is not known: %w", err)
	}
	behind, left, idle := s.remains()
	for _, b := range behind {
		more, err := s.more(ctx, b)
		var nowhere nowhereError
		switch {
		case errors.As(err, &nowhere):
			more = true
			left = append(left, semel.Left{Lane: b.lane(), Messages: b.unread, Reason: "whether there is more is not known: " + err.Error()})
		case err != nil:
			return false, nil, fmt.Errorf("kafka: topic %s, partition %d: whether there is more is not known: %w", b.topic, b.partition, err)
		}
		idle = idle && !more
	}
	return idle && s.tenure() == before, left, nil
}

// tenure is who reads what: while the brokers answered, a member may have been
// replaced, or given lanes.
type tenure struct {
	member *kgo.Client
	epoch  uint64
	// placed: it was told what it reads, and goes on.
	placed bool
}

func (s *Source) tenure() tenure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tenure{s.member, s.epoch, s.member != nil && s.rejoin == "" && !s.unplaced && !s.closed}
}

// reading is where a lane has got to.
type reading struct {
	place
	topicID [16]byte
	at      int64
	unread  int64
}

// remains are the lanes that have not got to their stable end, and what cannot
// be delivered. It is not idle where something was handed back, or moves.
func (s *Source) remains() (behind []reading, left []semel.Left, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle = true
	for _, l := range s.order {
		limit, at := l.stable, l.reached()
		if s.config.ReadUncommitted {
			limit = l.end
		}
		switch {
		case l.gone, l.passing: // it is to come again, or goes on behind what is lost
			idle = false
		case l.broken != nil:
			left = append(left, l.fault(l.broken))
		case l.leaving, limit < 0, len(l.ready) > 0, len(l.back) > 0:
			idle = false
		case at < limit && s.faults.stays[l.place] != nil:
			left = append(left, l.fault(s.faultOf(l)))
		case at < limit:
			behind = append(behind, reading{l.place, l.topicID, at, l.unread()})
		case limit < l.end:
			left = append(left, semel.Left{Lane: l.id.ID, Messages: l.unread(), Reason: "held up by an open transaction, which its producer or an operator must end"})
		}
	}
	return behind, left, idle
}

// unread is how many offsets are behind where the lane has got to.
func (l *lane) unread() int64 {
	at := max(l.reached(), l.committed.offset)
	if at < 0 || l.end < 0 {
		return contract.Unknown
	}
	return max(l.end-at, 0)
}

// more reports whether a fetch finds anything behind where a lane has got to.
// The end of a log may lie behind the last thing in it, since compaction removes
// tombstones and the control records of transactions; or a fetch is slow.
func (s *Source) more(ctx context.Context, r reading) (bool, error) {
	leader, err := s.leader(ctx, r.place)
	if err != nil {
		return false, err
	}
	response, err := s.fetchAt(r).RequestWith(ctx, leader)
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

// nowhereError is why no broker can be asked for a partition.
type nowhereError struct{ err error }

func (e nowhereError) Error() string { return "no broker is its leader: " + e.err.Error() }
func (e nowhereError) Unwrap() error { return e.err }

// leader is who is asked for a partition.
func (s *Source) leader(ctx context.Context, p place) (*kgo.Broker, error) {
	known, err := kadm.NewClient(s.side).Metadata(ctx, p.topic)
	if err != nil {
		return nil, err
	}
	topic := known.Topics[p.topic]
	partition, there := topic.Partitions[p.partition]
	switch {
	case topic.Err != nil:
		return nil, nowhereError{topic.Err}
	case !there:
		return nil, nowhereError{kerr.UnknownTopicOrPartition}
	case partition.Leader < 0:
		return nil, nowhereError{kerr.LeaderNotAvailable}
	}
	return s.side.Broker(int(partition.Leader)), nil
}

// fetchAt asks for the least there is at a place.
func (s *Source) fetchAt(r reading) *kmsg.FetchRequest {
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID, request.SessionEpoch, request.MaxBytes = -1, -1, 1
	if !s.config.ReadUncommitted {
		request.IsolationLevel = 1
	}
	topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	topic.Topic, topic.TopicID = r.topic, r.topicID
	partition.Partition, partition.FetchOffset, partition.PartitionMaxBytes = r.partition, r.at, 1
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	return request
}
