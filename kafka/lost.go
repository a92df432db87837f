package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// outOfRange notes that the place where a lane would be read has left the log.
// Called with lanes.mu held.
func (i *intake) outOfRange(l *lane, p *kgo.FetchPartition) {
	begins := ""
	if p.LogStartOffset > 0 { // not every broker says it with the error
		begins = fmt.Sprintf(", which now begins at %d", p.LogStartOffset)
	}
	l.skipsLost = i.config.OnLostRecords == GoOn
	remedy := howToReset(i.config.Group, l)
	if l.skipsLost {
		remedy = "The partition goes on behind them, as the policy says"
	}
	i.standStill(l, fmt.Errorf("kafka: topic %s, partition %d: offset %d of group %s is no longer in the log%s: records were deleted before they were read, and are lost. %s: %w",
		l.topic, l.partition, l.readAt(), i.config.Group, begins, remedy, p.Err))
}

// howToReset says how a person passes over what is lost.
func howToReset(group string, l *lane) string {
	return fmt.Sprintf("Nothing is skipped by itself: stop the consumer, set the group's offset deliberately (kafka-consumer-groups.sh --reset-offsets --group %s --topic %s:%d --to-earliest --execute), and start again",
		group, l.topic, l.partition)
}

// readAt is where the lane is to be read next.
func (l *lane) readAt() int64 { return max(l.next, l.committed.offset) }

// skipLost passes over records that are lost, where the policy says so: it
// commits the beginning of the log as the lanes' owner, and a new member begins
// there. A log that ends before the lane's place has lost something else, which
// nobody knows: that lane stands still.
func (s *Source) skipLost() {
	skipping := s.offsets.skipping()
	if len(skipping) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	var partitions []topicPartition
	for p := range skipping {
		partitions = append(partitions, p)
	}
	begins, err := s.brokers.listOffsets(ctx, partitions, atBegin, false)
	if err != nil {
		return // and is asked again
	}
	found := map[topicPartition]int64{}
	for p, at := range begins {
		if at > skipping[p] {
			found[p] = at
		}
	}
	if s.commits.starts(ctx, found) != nil {
		return // what stands still is told, and it is tried again
	}
	s.offsets.skipped(skipping, begins, found)
}

// skipping are lanes that are to pass over what is lost, and where they are.
func (o *offsets) skipping() map[topicPartition]int64 {
	all := map[topicPartition]int64{}
	for l := range o.lanes.each {
		if l.skipsLost && !l.gone && !o.member.replaceDemanded(l.topicPartition) {
			all[l.topicPartition] = l.readAt()
		}
	}
	return all
}

// skipped notes which lanes go on, and which stand still.
func (o *offsets) skipped(skipping, begins, found map[topicPartition]int64) {
	for p, from := range skipping {
		o.lanes.living(p, func(l *lane) {
			to, passes := found[p]
			switch _, known := begins[p]; {
			case passes:
				o.config.Logger.Error("records are lost: they were deleted before they were read, and are passed over, as the policy says",
					"group", o.config.Group, "topic", p.topic, "partition", p.partition, "from", from, "to", to-1, "offsets", to-from)
				l.committed = position{to, -1} // what is settled later is before it
				o.member.demandReplacement("records were lost", p)
			case known:
				o.intake.standStill(l, fmt.Errorf("kafka: topic %s, partition %d: offset %d of group %s is behind the end of the log: the brokers lost records (an unclean election of a leader?), and which ones is not known. %s: %w",
					p.topic, p.partition, from, o.config.Group, howToReset(o.config.Group, l), kerr.OffsetOutOfRange))
			default:
				return
			}
			l.skipsLost = false
		})
	}
}

// sessionEnded is a hook of the member: it says why the group's management
// failed, after the lanes are lost.
type sessionEnded struct{ config *Config }

// OnGroupManageError implements kgo.HookGroupManageError. What is not the
// group's doing comes as an error of Fetch.
func (e sessionEnded) OnGroupManageError(err error) {
	if removedByGroup(err) {
		e.config.Logger.Warn("the group took away what this member had: it was silent for too long, or has missed a rebalance", "group", e.config.Group, "error", err)
	}
}
