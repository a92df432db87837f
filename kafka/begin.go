package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// begin is called with the group's offsets of new lanes, before they are read.
// Where the group has none and Start was for the lane, it finds the place to
// begin and commits it, so that the group's offset shows it. A lane of which
// the place is not known waits; the others go on.
func (s *Source) begin(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	missing := s.noteBegin(offsets)
	if len(missing) == 0 {
		return offsets, nil
	}
	found, err := s.places(ctx, missing)
	if err == nil {
		err = s.commitStart(ctx, found)
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: group %s has no offsets yet, and where to begin could not be found and committed: %w", s.config.Group, err)
	}
	for p, at := range found {
		offsets[p.topic][p.partition] = kgo.NewOffset().At(at).WithEpoch(-1)
	}
	s.noteBegin(offsets)
	return offsets, nil
}

// noteBegin notes where lanes begin, and returns those without an offset.
func (s *Source) noteBegin(offsets map[string]map[int32]kgo.Offset) []place {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []place
	for topic, partitions := range offsets {
		for partition, offset := range partitions {
			p, at := place{topic, partition}, offset.EpochOffset()
			l := s.lanes[p]
			switch {
			case at.Offset < 0:
				missing = append(missing, p)
			case l != nil:
				l.committed = position{at.Offset, at.Epoch}
				l.delivered = at.Offset
			}
		}
	}
	return missing
}

// places are where lanes begin that Start was for. Others are not in it and
// begin at their beginning, or wait.
func (s *Source) places(ctx context.Context, missing []place) (map[place]int64, error) {
	if !s.mayHaveStarts(missing) {
		return nil, nil
	}
	if err := s.sameTopics(ctx); err != nil {
		return nil, err
	}
	found := map[place]int64{}
	old := map[string]bool{} // topics that were begun before
	s.mu.Lock()
	for _, p := range missing {
		at, fresh, known := s.startOf(p)
		if known {
			found[p] = at
			old[p.topic] = old[p.topic] || !fresh
		}
	}
	s.mu.Unlock()
	return found, s.clamp(ctx, found, old)
}

// mayHaveStarts reports whether Start was for any partition of these topics.
func (s *Source) mayHaveStarts(missing []place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range missing {
		if b, known := s.beginnings[p.topic]; !known || len(b.starts) > 0 {
			return true
		}
	}
	return false
}

// sameTopics asks for the topics' ids again: one may have been created anew
// since this member joined. Then a new member begins.
func (s *Source) sameTopics(ctx context.Context) error {
	s.mu.Lock()
	before := map[string][16]byte{}
	for topic, id := range s.topicIDs {
		before[topic] = id
	}
	s.mu.Unlock()
	err := s.askTopics(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Also where another topic was refused: its id is noted, and the next look
	// would find nothing new.
	for topic, id := range before {
		if s.topicIDs[topic] != id {
			s.replace("topic " + topic + " was created anew")
			return fmt.Errorf("topic %s was deleted and created anew just now", topic)
		}
	}
	return err
}

// startOf is where Start led for a lane; known is false if it begins at its
// beginning, or waits. Called with Source.mu held.
func (s *Source) startOf(p place) (at int64, fresh, known bool) {
	if err := s.undecided[p.topic]; err != nil {
		s.wait(p, err)
		return 0, false, false
	}
	b := s.beginnings[p.topic]
	switch {
	case int(p.partition) >= len(b.starts):
		return 0, false, false
	case b.topicID != s.topicIDs[p.topic]:
		s.config.Logger.Warn("the topic was created anew since the group first joined; the partition is read from its beginning, start is not for it",
			"group", s.config.Group, "topic", p.topic, "partition", p.partition)
		return 0, false, false
	case b.topicID == noTopicID && !b.fresh:
		s.wait(p, errors.New("the brokers give topics no ids (Kafka before 2.8), so that nobody can tell whether this topic is still the one in which the group began; set the group's offset deliberately (kafka-consumer-groups.sh --reset-offsets)"))
		return 0, false, false
	}
	return b.starts[p.partition], b.fresh, true
}

// wait lets a lane wait that has no place to begin. Called with Source.mu held.
func (s *Source) wait(p place, why error) {
	l := s.lanes[p]
	if l == nil || l.gone {
		return
	}
	s.standStill(l, fmt.Errorf("kafka: topic %s, partition %d: group %s has no offset, and where to begin is not known; it waits, the others go on: %w", p.topic, p.partition, s.config.Group, why))
}

// clamp moves what has left the log to the log's beginning, in topics that were
// begun before: the group's offsets are gone, and with them what was read.
func (s *Source) clamp(ctx context.Context, found map[place]int64, old map[string]bool) error {
	var topics []string
	for topic, begunBefore := range old {
		if begunBefore {
			topics = append(topics, topic)
		}
	}
	if len(topics) == 0 {
		return nil
	}
	starts, err := kadm.NewClient(s.side).ListStartOffsets(ctx, topics...)
	if err != nil {
		return err
	}
	for p, at := range found {
		if !old[p.topic] {
			continue
		}
		if o, known := starts.Lookup(p.topic, p.partition); known && o.Err == nil && o.Offset > at {
			found[p] = o.Offset
			s.config.Logger.Warn("records have left the log, and whether they were read is not known, because the group has no offset",
				"group", s.config.Group, "topic", p.topic, "partition", p.partition, "from", at, "to", o.Offset-1)
		}
		s.config.Logger.Info("the group has no offset; the partition is read from where the group first began, as the store remembers",
			"group", s.config.Group, "topic", p.topic, "partition", p.partition, "offset", found[p])
	}
	return nil
}

// commitStart commits where lanes begin, as their owner.
func (s *Source) commitStart(ctx context.Context, found map[place]int64) error {
	lanes := map[stamp]map[place]pending{}
	s.mu.Lock()
	for p, at := range found {
		if l := s.lanes[p]; l != nil && !l.gone {
			if lanes[l.stamp] == nil {
				lanes[l.stamp] = map[place]pending{}
			}
			lanes[l.stamp][p] = pending{l, position{at, -1}, l.stamp, l.topicID}
		}
	}
	s.mu.Unlock()
	for who, those := range lanes {
		response, err := s.commitRequest(who, those).RequestWith(ctx, s.side)
		if err != nil {
			return err
		}
		for _, topic := range response.Topics {
			for _, p := range topic.Partitions {
				err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
