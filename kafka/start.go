package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config.Start is for the partitions a topic has when the group first joins.
// One that is added later is read from its beginning, or what is produced to it
// before somebody reads it would be lost. So the group must remember how many
// partitions there were: that number stands in the metadata of every offset
// committed for the topic, and each owner finds it with the offsets it fetches.

const startMark = "semel-start/"

// starts is what is known of where topics began: how many partitions Start was
// for. Guarded by Source.mu.
type starts map[string]int32

func (s starts) metadata(topic string) *string {
	n, known := s[topic]
	if !known {
		return nil
	}
	return kmsg.StringPtr(startMark + strconv.Itoa(int(n)))
}

func (s starts) note(topic string, metadata string) {
	if digits, ok := strings.CutPrefix(metadata, startMark); ok {
		if n, err := strconv.ParseInt(digits, 10, 32); err == nil {
			s[topic] = max(s[topic], int32(n))
		}
	}
}

// fetched is called with what the group answered, before begin.
func (s *Source) fetched(_ context.Context, _ *kgo.Client, response *kmsg.OffsetFetchResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, group := range response.Groups {
		for _, topic := range group.Topics {
			for _, p := range topic.Partitions {
				if p.Metadata != nil {
					s.starts.note(topic.Topic, *p.Metadata)
				}
			}
		}
	}
	return nil
}

// begin is called with the group's offsets of new lanes, before they are read.
// Where the group has none, it finds the place to begin and commits it, so
// that a crash before the first settlement does not move it.
func (s *Source) begin(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	missing := s.noteBegin(offsets)
	if len(missing) == 0 || s.config.Start == (Start{}) {
		return offsets, nil
	}
	found, err := s.findStart(ctx, missing)
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

// findStart finds where to begin the partitions that Start is for.
func (s *Source) findStart(ctx context.Context, missing []place) (map[place]int64, error) {
	topics := map[string][]place{}
	for _, p := range missing {
		topics[p.topic] = append(topics[p.topic], p)
	}
	ask := kadm.NewClient(s.side)
	found := map[place]int64{}
	for topic, places := range topics {
		meant, err := s.meant(ctx, ask, topic)
		if err != nil {
			return nil, err
		}
		offsets, err := s.startOffsets(ctx, ask, topic)
		if err != nil {
			return nil, err
		}
		for _, p := range places {
			if at, known := offsets.Lookup(topic, p.partition); known && p.partition < meant {
				found[p] = at.Offset
			}
		}
	}
	return found, nil
}

// meant returns for how many partitions of a topic Start is.
func (s *Source) meant(ctx context.Context, ask *kadm.Client, topic string) (int32, error) {
	known, err := ask.FetchOffsets(ctx, s.config.Group)
	if err != nil {
		return 0, err
	}
	ends, err := ask.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range known[topic] {
		s.starts.note(topic, o.Metadata)
	}
	if n, found := s.starts[topic]; found || len(known[topic]) > 0 {
		return n, nil
	}
	s.starts[topic] = int32(len(ends[topic]))
	return s.starts[topic], nil
}

// startOffsets are where the partitions of a topic begin by Start.
func (s *Source) startOffsets(ctx context.Context, ask *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	var offsets kadm.ListedOffsets
	var err error
	switch start := s.config.Start; {
	case start.Now && s.config.ReadUncommitted:
		offsets, err = ask.ListEndOffsets(ctx, topic)
	case start.Now: // what an open transaction holds was not to be read yet
		offsets, err = ask.ListCommittedOffsets(ctx, topic)
	case start.Group == "":
		offsets, err = ask.ListOffsetsAfterMilli(ctx, start.At.UnixMilli(), topic)
	default:
		return s.othersOffsets(ctx, ask, topic)
	}
	if err != nil {
		return nil, err
	}
	return offsets, offsets.Error()
}

// othersOffsets are another group's offsets, or the beginning where it has none.
func (s *Source) othersOffsets(ctx context.Context, ask *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	offsets, err := ask.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	others, err := ask.FetchOffsets(ctx, s.config.Start.Group)
	switch {
	case errors.Is(err, kerr.GroupIDNotFound) || err == nil && len(others) == 0:
		return nil, fmt.Errorf("Start.Group is %s, and there is no such group with offsets; correct its name, or leave it out to begin at the beginning", s.config.Start.Group)
	case err != nil:
		return nil, explain(err, topic, s.config.Start.Group)
	}
	for partition, o := range others[topic] {
		if at, known := offsets.Lookup(topic, partition); known && o.At >= 0 {
			at.Offset = max(at.Offset, o.At)
			offsets[topic][partition] = at
		}
	}
	return offsets, offsets.Error()
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
