package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// The position of a partition is written to the consumer's store before its offset is committed to the group. So the
// store can be behind the group only if the store lost writes: its database was restored, or failed over to a server
// without the last commits, or is a different database. A store that is behind the group lacks effects of messages
// whose offsets the group has, and these messages would never be delivered again. The metadata of a committed offset
// says that the store had the position first. If the metadata does not say so, because an operator or an older release
// set the offset, the offset proves nothing about the store.

// positions writes the positions of lanes to the consumer's store, and compares them with the group's offsets.
type positions struct {
	config   *Config
	brokers  *brokers
	lanes    *lanes
	gate     *gate
	consumer string
	store    laneoffset.Store // nil if the store does not keep positions of lanes

	mu sync.Mutex // guards the fields below; no other lock is taken while it is held
	// The error because of which the source stopped reading; nil if the store is not behind the group.
	behind error
	// The partitions for which the log already contains a line that the position is unknown.
	logged map[topicPartition]bool
}

// The constant storeWait is the time limit of writes to the store, because in SQLite another transaction may hold the
// only write lock. The constant lookWait is the time limit of reads.
const (
	storeWait = 30 * time.Second
	lookWait  = 5 * time.Second
)

// fault returns the error because of which the source stopped reading; nil if the store is not behind.
func (k *positions) fault() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.behind
}

// keep writes the positions of lanes to the store. After keep has returned nil, the caller commits the positions to the
// group.
func (k *positions) keep(ctx context.Context, all map[owner]map[topicPartition]pendingCommit) error {
	if err := k.fault(); err != nil || k.store == nil {
		return err
	}
	var which []pendingCommit
	var to []laneoffset.Advance
	for _, some := range all {
		for p, commit := range some {
			if commit.position.offset > commit.storedOffset {
				which = append(which, commit)
				to = append(to, laneoffset.Advance{
					LaneOffset: laneoffset.LaneOffset{Lane: stored.PartitionName(k.config.Group, p.lane(), commit.topic), Offset: commit.position.offset}, Least: commit.storedOffset,
				})
			}
		}
	}
	if len(to) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	before, err := k.store.AdvanceOffsets(ctx, k.consumer, to)
	if err != nil {
		return fmt.Errorf("kafka: group %s: the positions of its partitions could not be written to the store of consumer %s, so they are not committed yet: %w", k.config.Group, k.consumer, err)
	}
	return k.recordStored(which, to, before)
}

// recordStored records in the lanes which positions the store has now. If the store had a lower position for a
// partition than this process had written, the store has lost writes. If writes are lost, recordStored calls giveUp,
// because all lanes of this process may be ahead of the store.
func (k *positions) recordStored(which []pendingCommit, to []laneoffset.Advance, before []laneoffset.LaneOffset) error {
	var lacking []comparison
	for i, commit := range which {
		if to[i].Lacks(before[i]) {
			lacking = append(lacking, comparison{topicPartition: commit.lane.topicPartition, store: before[i].Offset, group: to[i].Least, storedFirst: true})
		}
	}
	if len(lacking) > 0 {
		return k.giveUp(k.explain(lacking))
	}
	k.lanes.withAll(func([]*lane) {
		for i, commit := range which {
			commit.lane.storedOffset = max(commit.lane.storedOffset, before[i].Offset, to[i].Offset)
		}
	})
	return nil
}

// giveUp stops the source: the source reads no further records, accepts no acks, and commits no offsets.
func (k *positions) giveUp(why error) error {
	k.mu.Lock()
	if k.behind == nil {
		k.behind = why
	}
	why = k.behind
	k.mu.Unlock()
	k.lanes.lose(k.lanes.all(), "the store is behind the group")
	k.gate.wakeUp()
	return why
}

// admit checks the group's offsets of lanes before the lanes are read. If the store does not answer, admit
// takes the positions that the store must have from the metadata of the group's offsets.
func (k *positions) admit(ctx context.Context, which map[topicPartition][16]byte) error {
	if k.store == nil || len(which) == 0 {
		return nil
	}
	found, err := groupOffsets(ctx, k.brokers, which)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	answered := k.ask(ctx, found, which) == nil
	if answered {
		if err := k.judge(found); err != nil {
			return k.giveUp(err)
		}
	}
	for _, c := range found {
		k.lanes.withLane(c.topicPartition, func(l *lane) {
			switch {
			case answered:
				l.storedOffset = c.store
			case c.storedFirst:
				l.storedOffset = c.group
			}
		})
	}
	return nil
}

// check checks the group's offsets of all topics before a member joins.
func (k *positions) check(ctx context.Context, topics []string, ids map[string][16]byte) error {
	if k.store == nil {
		return nil
	}
	found, err := groupOffsetsOf(ctx, k.brokers, topics, ids)
	if err != nil {
		return err
	}
	which := map[topicPartition][16]byte{}
	for _, c := range found {
		which[c.topicPartition] = ids[c.topic]
	}
	if err := k.ask(ctx, found, which); err != nil {
		return errStore{fmt.Errorf("kafka: group %s: the store of consumer %s did not answer whether it is behind the group, so nothing is read: %w", k.config.Group, k.consumer, err)}
	}
	return k.judge(found)
}

// ask reads the positions from the store, and adds them to the comparisons.
func (k *positions) ask(ctx context.Context, found []comparison, ids map[topicPartition][16]byte) error {
	names := make([]string, len(found))
	for i, c := range found {
		names[i] = stored.PartitionName(k.config.Group, c.topicPartition.lane(), ids[c.topicPartition])
	}
	stand, err := k.store.Offsets(ctx, k.consumer, names)
	for i := range stand {
		found[i].store = stand[i].Offset
	}
	return err
}

// judge returns an error if the store is behind the group. If a comparison is not possible, judge writes one log line
// per partition.
func (k *positions) judge(found []comparison) error {
	var behind, ahead, unknown []comparison
	for _, c := range found {
		switch {
		case c.hasLostPosition():
			behind = append(behind, c)
		case c.store < c.group && c.store >= 0:
			ahead = append(ahead, c)
		case c.store < c.group:
			unknown = append(unknown, c)
		}
	}
	for _, c := range k.takeUnlogged(ahead) {
		k.config.Logger.Warn("the group's offset is ahead of the store, because an operator set it or an older release committed it: the records in between are not read",
			"group", k.config.Group, "topic", c.topic, "partition", c.partition, "store", c.store, "at", c.group)
	}
	if n := len(k.takeUnlogged(unknown)); n > 0 {
		k.config.Logger.Info("the store has no position of these partitions yet: whether the database was restored cannot be known before the first commit of each partition",
			"group", k.config.Group, "partitions", n)
	}
	if len(behind) > 0 {
		return k.explain(behind)
	}
	return nil
}

// takeUnlogged returns the partitions that were not logged yet, and marks them as logged.
func (k *positions) takeUnlogged(which []comparison) (all []comparison) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range which {
		if !k.logged[c.topicPartition] {
			k.logged[c.topicPartition] = true
			all = append(all, c)
		}
	}
	return all
}

// comparison holds the position of a partition in the store and in the group; -1 if unknown.
type comparison struct {
	topicPartition
	store, group int64
	// storedFirst is true if the metadata says that the store had the offset before the group had the offset.
	storedFirst bool
	metadata    string
}

func (c comparison) hasLostPosition() bool { return c.storedFirst && c.store < c.group }

// groupOffsets returns the group's offsets of partitions, with the ids of their topics.
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

// groupOffsetsOf returns the group's offsets of all partitions of topics, in order.
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
				all = append(all, comparison{topicPartition: topicPartition{topic, partition}, store: -1, group: o.At, storedFirst: stored.MarkedKept(o.Metadata, ids[topic]), metadata: o.Metadata})
			}
		}
	}
	slices.SortFunc(all, func(a, b comparison) int { return a.topicPartition.compare(b.topicPartition) })
	return all, nil
}

// The largest number of partitions that an error or a log line names.
const mostNamed = 8

// explain returns the error for partitions in which the store is behind the group. The text of the error says what an
// operator must do.
func (k *positions) explain(behind []comparison) error {
	var parts []string
	records := int64(0)
	for i, c := range behind {
		records += c.group - max(c.store, 0)
		switch {
		case i == mostNamed:
			parts = append(parts, fmt.Sprintf("and %d more partitions", len(behind)-i))
		case i > mostNamed:
		case c.store < 0:
			parts = append(parts, fmt.Sprintf("topic %s, partition %d: the store has no position, the group is at %d", c.topic, c.partition, c.group))
		default:
			parts = append(parts, fmt.Sprintf("topic %s, partition %d: the store is at %d, the group at %d: %d records", c.topic, c.partition, c.store, c.group, c.group-c.store))
		}
	}
	return fmt.Errorf("kafka: the store of consumer %s is behind group %s: its database was restored from a backup, or failed over to a server that lacks its last commits, or it is another one. The effects of up to %d records are missing, and nothing more is read. %s. To apply them, stop all processes of the consumer and set the group back to the store's positions: 'semel consumers positions plan' shows what would be done, and 'semel consumers positions reset' does it; messages that took effect already are then duplicates. To give up those records, use 'semel consumers positions accept --all'. A Go program without a policy uses kafka.Recovery (Compare, Reset, Accept), or these commands with the name of the consumer, --store, --brokers, --topics and --group: %w",
		k.consumer, k.config.Group, records, strings.Join(parts, "; "), semel.ErrBehind)
}
