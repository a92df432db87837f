package kafka

import (
	"context"
	"time"
)

// askEnds asks where own partitions end and, of those of which it is not known
// yet, begin. What is stable is asked for last: if it is before the end, a
// transaction is open.
func (s *Source) askEnds(ctx context.Context) error {
	asked := time.Now()
	own, fresh := s.progress.ownPartitions()
	ends, err := s.brokers.listOffsets(ctx, own, atEnd, false)
	if err != nil {
		return err
	}
	stable := ends
	if !s.config.ReadUncommitted {
		if stable, err = s.brokers.listOffsets(ctx, own, atEnd, true); err != nil {
			return err
		}
	}
	begins, err := s.brokers.listOffsets(ctx, fresh, atBegin, false)
	if err != nil {
		return err
	}
	s.progress.noteEnds(asked, begins, ends, stable)
	return nil
}

// ownPartitions are the partitions of living lanes; fresh are those that have got
// nowhere yet.
func (p *progress) ownPartitions() (own, fresh []topicPartition) {
	for l := range p.lanes.each {
		if l.gone {
			continue
		}
		own = append(own, l.topicPartition)
		if l.reached() < 0 {
			fresh = append(fresh, l.topicPartition)
		}
	}
	return own, fresh
}

func (p *progress) noteEnds(asked time.Time, begins, ends, stable map[topicPartition]int64) {
	now := time.Now()
	for l := range p.lanes.each {
		if at, known := begins[l.topicPartition]; known && l.reached() < 0 {
			l.delivered = at // the group has no offset, so this is where the lane begins
		}
		if at, known := ends[l.topicPartition]; known {
			l.end, l.endAsked = at, asked
		}
		if at, known := stable[l.topicPartition]; known {
			l.stable = at
		}
		p.noteHeldUp(l, now)
	}
}
