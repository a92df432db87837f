package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// begin is called with the group's offsets of new lanes before the lanes are read. If the group has no offset for a
// lane and Start applies to the lane, begin finds the start position and commits this position. A lane whose start
// position is unknown waits; other lanes continue.
func (g *group) begin(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	if err := g.commits.positions.admit(ctx, g.commits.lanesWithOffset(offsets)); err != nil {
		return nil, err
	}
	missing := g.commits.noteBegin(offsets)
	if len(missing) == 0 {
		g.logBegin(offsets)
		return offsets, nil
	}
	found, err := g.beginnings.startOffsetsOf(ctx, missing)
	if err == nil {
		err = g.commits.commitStarts(ctx, found)
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: group %s has no offsets yet, and its start offsets could not be found and committed: %w", g.config.Group, err)
	}
	for p, at := range found {
		offsets[p.topic][p.partition] = kgo.NewOffset().At(at).WithEpoch(-1)
	}
	g.commits.noteBegin(offsets)
	g.logBegin(offsets)
	return offsets, nil
}

// lanesWithOffset returns the lanes that have an offset in the parameter found, with the topic ids of the lanes.
func (c *commits) lanesWithOffset(found map[string]map[int32]kgo.Offset) map[topicPartition][16]byte {
	all := map[topicPartition][16]byte{}
	for l := range c.lanes.each {
		if offset, told := found[l.topic][l.partition]; told && offset.EpochOffset().Offset >= 0 {
			all[l.topicPartition] = l.topicID
		}
	}
	return all
}

// noteBegin stores the begin offset of each lane, and returns the lanes without an offset.
func (c *commits) noteBegin(found map[string]map[int32]kgo.Offset) []topicPartition {
	var missing []topicPartition
	for topic, partitions := range found {
		for partition, offset := range partitions {
			if offset.EpochOffset().Offset < 0 {
				missing = append(missing, topicPartition{topic, partition})
			}
		}
	}
	for l := range c.lanes.each {
		if offset, told := found[l.topic][l.partition]; told && offset.EpochOffset().Offset >= 0 {
			at := offset.EpochOffset()
			l.committed = position{at.Offset, at.Epoch}
			l.delivered = at.Offset
		}
	}
	return missing
}

// startOffsetsOf returns the start positions of lanes to which Start applied. The result does not contain
// lanes that begin at the beginning of their log, or that wait.
func (b *beginnings) startOffsetsOf(ctx context.Context, missing []topicPartition) (map[topicPartition]int64, error) {
	if !b.mayHaveStarts(missing) {
		return nil, nil
	}
	if err := b.topics.checkTopicIDs(ctx); err != nil {
		return nil, err
	}
	found := map[topicPartition]int64{}
	old := map[string]bool{} // topics that the group joined earlier
	for _, p := range missing {
		at, fresh, known := b.startOf(p)
		if known {
			found[p] = at
			old[p.topic] = old[p.topic] || !fresh
		}
	}
	return found, b.clamp(ctx, found, old)
}

// mayHaveStarts reports whether Start applied to any topic of the given partitions.
func (b *beginnings) mayHaveStarts(missing []topicPartition) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range missing {
		if began, known := b.known[p.topic]; !known || len(began.Starts) > 0 {
			return true
		}
	}
	return false
}

// startOf returns the start position of a lane. The result known is false if the lane begins at the beginning of its
// log, or if the lane must wait.
func (b *beginnings) startOf(p topicPartition) (at int64, fresh, known bool) {
	id := b.topics.id(p.topic)
	b.mu.Lock()
	began, undecided := b.known[p.topic], b.undecided[p.topic]
	b.mu.Unlock()
	if undecided != nil {
		b.intake.wait(p, undecided)
		return 0, false, false
	}
	switch {
	case int(p.partition) >= len(began.Starts):
		return 0, false, false
	case began.TopicID != id:
		b.config.Logger.Warn("the topic was deleted and created again since the group first joined; the partition is read from its beginning, and start does not apply to it",
			"group", b.config.Group, "topic", p.topic, "partition", p.partition)
		return 0, false, false
	case began.TopicID == noTopicID && !began.Fresh:
		b.intake.wait(p, errors.New("the brokers give topics no ids (Kafka before 2.8), so it is not known whether this is still the topic in which the group began; set the group's offset (kafka-consumer-groups.sh --reset-offsets)"))
		return 0, false, false
	}
	return began.Starts[p.partition], began.Fresh, true
}

// wait stops a lane whose start position is unknown.
func (i *intake) wait(p topicPartition, why error) {
	i.lanes.withLane(p, func(l *lane) {
		i.stopLane(l, fmt.Errorf("kafka: topic %s, partition %d: group %s has no offset, and its start offset is not known; the partition waits, other partitions continue: %w", p.topic, p.partition, i.config.Group, why))
	})
}

// clamp corrects start positions in topics that the group joined earlier. A position that is no longer in the log moves
// to the beginning of the log. If the group joined a topic earlier but has no offset, the group has lost its offsets,
// so the source does not know which records were read.
func (b *beginnings) clamp(ctx context.Context, found map[topicPartition]int64, old map[string]bool) error {
	var topics []string
	for topic, begunBefore := range old {
		if begunBefore {
			topics = append(topics, topic)
		}
	}
	if len(topics) == 0 {
		return nil
	}
	starts, err := kadm.NewClient(b.brokers.client()).ListStartOffsets(ctx, topics...)
	if err != nil {
		return err
	}
	for p, at := range found {
		if !old[p.topic] {
			continue
		}
		if o, known := starts.Lookup(p.topic, p.partition); known && o.Err == nil && o.Offset > at {
			found[p] = o.Offset
			b.config.Logger.Warn("records were removed from the log, and it is not known whether they were read, because the group has no offset",
				"group", b.config.Group, "topic", p.topic, "partition", p.partition, "from", at, "to", o.Offset-1)
		}
		b.config.Logger.Info("the group has no offset; the partition is read from where the group first began, according to the store",
			"group", b.config.Group, "topic", p.topic, "partition", p.partition, "offset", found[p])
	}
	return nil
}

// logBegin logs the assigned partitions with their begin offsets.
func (g *group) logBegin(offsets map[string]map[int32]kgo.Offset) {
	var all []partitionOffset
	for topic, partitions := range offsets {
		for partition, offset := range partitions {
			all = append(all, partitionOffset{topicPartition{topic, partition}, offset.EpochOffset().Offset})
		}
	}
	logPartitions(g.config, "partitions assigned", all)
}

// beginsToCommit returns the positions at which reading begins: those of the given positions that belong to a lane of
// this process. The key of the result is the owner of the lane.
func (c *commits) beginsToCommit(found map[topicPartition]int64) map[owner]map[topicPartition]pendingCommit {
	all := map[owner]map[topicPartition]pendingCommit{}
	for l := range c.lanes.each {
		at, begins := found[l.topicPartition]
		if !begins || l.ended {
			continue
		}
		if all[l.owner] == nil {
			all[l.owner] = map[topicPartition]pendingCommit{}
		}
		all[l.owner][l.topicPartition] = pendingCommit{l, position{at, -1}, l.owner, l.topicID, l.storedOffset}
	}
	return all
}

// commitStarts writes the begin positions of lanes to the store, and then commits them in the name of the lanes'
// owner.
func (c *commits) commitStarts(ctx context.Context, found map[topicPartition]int64) error {
	all := c.beginsToCommit(found)
	if err := c.positions.keep(ctx, all); err != nil {
		return err
	}
	for who, which := range all {
		response, err := c.request(who, which).RequestWith(ctx, c.brokers.client())
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
