package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// isIdle is source.Info.Idle: the source is idle when each of its lanes is at
// its stable end, which is where an open transaction begins, or the end of the
// log. Left are lanes that an open transaction holds up and, as faults, those
// that stand still. A member without lanes is idle.
func (s *Source) isIdle(ctx context.Context) (bool, []semel.Unfinished, error) {
	if settled, err := s.topicsShared(ctx); !settled {
		return false, nil, err
	}
	before := s.assignment()
	if before.client == nil {
		return false, nil, nil
	}
	if err := s.askEnds(ctx); err != nil {
		return false, nil, fmt.Errorf("kafka: where the partitions end is not known: %w", err)
	}
	behind, left, idle := s.progress.remains()
	for _, b := range behind {
		more, err := s.brokers.more(ctx, b)
		var nowhere noLeaderError
		switch {
		case errors.As(err, &nowhere):
			more = true
			left = append(left, semel.Unfinished{Lane: b.lane(), Messages: b.unread, Reason: "whether there is more is not known: " + err.Error()})
		case err != nil:
			return false, nil, fmt.Errorf("kafka: topic %s, partition %d: whether there is more is not known: %w", b.topic, b.partition, err)
		}
		idle = idle && !more
	}
	return idle && s.assignment() == before, left, nil
}

// assignment is who reads what. While the brokers answered, a member may have
// been replaced, or given lanes.
type assignment struct {
	client *kgo.Client // nil where none was told what it reads, and goes on
	given  uint64
}

func (s *Source) assignment() assignment { return assignment{s.member.reading(), s.lanes.given()} }

// lanePosition is where a lane has got to.
type lanePosition struct {
	topicPartition
	topicID [16]byte
	at      int64
	unread  int64
}

// remains are the lanes that have not got to their stable end, and what cannot
// be delivered. It is not idle where something was handed back, or moves.
func (p *progress) remains() (behind []lanePosition, left []semel.Unfinished, idle bool) {
	idle = true
	for l := range p.lanes.each {
		limit, at := l.stable, l.reached()
		if p.config.ReadUncommitted {
			limit = l.end
		}
		switch {
		case l.gone, l.skipsLost: // it is to come again, or goes on behind what is lost
			idle = false
		case l.broken != nil:
			left = append(left, l.left(l.broken))
		case l.leaving, limit < 0:
			idle = false
		case l.paused && l.unsettled > 0: // what it has waits for what was delivered
			if n := l.unread(); n != 0 || len(l.back) > 0 {
				left = append(left, semel.Unfinished{Lane: l.id.ID, Messages: n, Reason: "waits for a message before it"})
			}
		case len(l.ready) > 0, len(l.back) > 0:
			idle = false
		case at < limit && l.fault != nil:
			left = append(left, l.left(l.fault))
		case at < limit:
			behind = append(behind, lanePosition{l.topicPartition, l.topicID, at, l.unread()})
		case limit < l.end:
			left = append(left, semel.Unfinished{Lane: l.id.ID, Messages: l.unread(), Reason: "held up by an open transaction, which its producer or an operator must end"})
		}
	}
	return behind, left, idle
}

// unread is how many offsets are behind where the lane has got to.
func (l *lane) unread() int64 {
	at := max(l.reached(), l.committed.offset)
	if at < 0 || l.end < 0 {
		return source.Unknown
	}
	return max(l.end-at, 0)
}
