package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Standing is the result of a comparison: the store's position of a partition against the group's offset.
type Standing uint8

const (
	// Level means that the store has the effects of all records whose offsets the group has committed.
	Level Standing = iota
	// Behind means that the store has lost data, so effects are missing.
	Behind
	// Ahead means that the group's offset is later than the store's position, because an operator or an older
	// release set the offset. Only the operator can know whether effects are missing.
	Ahead
	// Unknown means that the store has no position of the partition, and that the group's offset does not prove that
	// there was a position.
	Unknown
	// NotBegun means that the group has no offset.
	NotBegun
)

// String returns the word for s in the output of commands.
func (s Standing) String() string {
	return enum.Name([]string{"level", "behind", "ahead", "unknown", "not_begun"}, s, "Standing")
}

// PartitionPosition compares the position of a partition in the store and in the group.
type PartitionPosition struct {
	Topic     string
	Partition int32
	Standing  Standing
	// Store and Group are the offsets of the first unprocessed record in the store and in the group. The value is
	// laneoffset.None if there is no offset.
	Store, Group int64
	// Start is the offset of the first record in the log, End the offset after the last record.
	Start, End int64
	// Target is the offset to which the group must be set back so that the missing effects are applied. Target is the
	// store's position or, if the store has no position, the offset at which the group first began. Target is
	// laneoffset.None if the store's position and the group's first offset are unknown.
	Target int64

	id       [16]byte
	metadata string
}

// Missing returns the number of records whose effects may be missing: the records from Target to the group's
// offset. If Target is not known, Missing counts from offset 0.
func (p PartitionPosition) Missing() int64 {
	if p.Standing != Behind && p.Standing != Ahead {
		return 0
	}
	return max(p.Group-max(p.Target, 0), 0)
}

// Gone returns the number of missing records that are no longer in the log. The effects of records that are gone cannot
// be recovered.
func (p PartitionPosition) Gone() int64 {
	if p.Missing() == 0 {
		return 0
	}
	return max(min(p.Start, p.Group)-max(p.Target, 0), 0)
}

// Recovery is used after a restore of a consumer's store. A Recovery compares the store's positions with the group's
// offsets, and sets positions and offsets to the same values. The group must have no members during the recovery. Close
// the Recovery after use.
type Recovery struct {
	bystander
	consumer string
	store    laneoffset.Store
}

// NewRecovery checks the configuration, which must be the configuration of the consumer. NewRecovery sends no requests.
func NewRecovery(c Config, consumer string, store laneoffset.Store) (*Recovery, error) {
	r := &Recovery{consumer: consumer, store: store}
	if err := r.configure(c); err != nil {
		return nil, err
	}
	return r, nil
}

// Close closes the connections.
func (r *Recovery) Close() { r.close() }

// Compare returns the position of each partition of the topics that are read, ordered by topic and number.
func (r *Recovery) Compare(ctx context.Context) ([]PartitionPosition, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, ids, err := r.ask(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	// The group's offsets are requested before the ends of the logs, so that no offset is after an end.
	offsets, err := groupOffsetsOf(ctx, &r.brokers, names, ids)
	if err != nil {
		return nil, err
	}
	logs, err := r.logsOf(ctx, names, ids, func(ask *kadm.Client) (kadm.ListedOffsets, error) {
		return ask.ListEndOffsets(ctx, names...)
	})
	if err != nil {
		return nil, err
	}
	all := make([]PartitionPosition, len(logs))
	for i, l := range logs {
		all[i] = PartitionPosition{
			Topic: l.topic, Partition: l.partition, Store: laneoffset.None, Group: laneoffset.None,
			Start: l.start, End: l.end, Target: laneoffset.None, id: l.id,
		}
	}
	for _, c := range offsets {
		if i, found := slices.BinarySearchFunc(logs, c.topicPartition, func(l log, p topicPartition) int { return l.compare(p) }); found {
			all[i].Group, all[i].metadata = c.group, c.metadata
		}
	}
	if err := r.computeStanding(ctx, all); err != nil {
		return nil, err
	}
	return all, nil
}

// computeStanding sets the fields Store and Standing of each partition.
func (r *Recovery) computeStanding(ctx context.Context, all []PartitionPosition) error {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = r.positionName(p)
	}
	offsets, err := r.store.Offsets(ctx, r.consumer, names)
	if err != nil {
		return r.storeFailed(err)
	}
	begun := map[string]stored.Beginning{}
	for i := range all {
		one := &all[i]
		one.Store = offsets[i].Offset
		one.Standing = standingOf(*one)
		if one.Target = one.Store; one.Store < 0 {
			if one.Target, err = r.startOffset(ctx, begun, topicPartition{one.Topic, one.Partition}, one.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// positionName returns the name under which the store has the position of a partition.
func (r *Recovery) positionName(p PartitionPosition) string {
	return stored.PartitionName(r.config.Group, topicPartition{p.Topic, p.Partition}.lane(), p.id)
}

func standingOf(p PartitionPosition) Standing {
	switch {
	case p.Group < 0:
		return NotBegun
	case p.Store >= p.Group:
		return Level
	case stored.MarkedKept(p.metadata, p.id):
		return Behind
	case p.Store < 0:
		return Unknown
	}
	return Ahead
}

// startOffset returns the stored offset at which the group began a partition; laneoffset.None if this offset is
// unknown.
func (r *Recovery) startOffset(ctx context.Context, known map[string]stored.Beginning, p topicPartition, id [16]byte) (int64, error) {
	store, keeps := r.store.(source.PositionStore)
	if !keeps {
		return laneoffset.None, nil
	}
	began, asked := known[p.topic]
	if !asked {
		found, kept, err := stored.Store{Consumer: r.consumer, Positions: store}.Load(ctx, stored.Name(r.config.Group, p.topic))
		if err != nil {
			return 0, r.storeFailed(err)
		}
		if !kept {
			return laneoffset.None, nil
		}
		began, known[p.topic] = found, found
	}
	if began.TopicID != id || int(p.partition) >= len(began.Starts) {
		return 0, nil // the group read this partition from its beginning
	}
	return began.Starts[p.partition], nil
}

func (r *Recovery) storeFailed(err error) error {
	return fmt.Errorf("the store of consumer %s: %w", r.consumer, err)
}

// Reset sets the group's offsets back to the Targets of the given partitions, and never sets an offset forward. If the
// group has members, Reset returns an error and sets nothing. If a Target is no longer in the log, the caller must set
// Target to Start; the records between Target and Start (see Gone) are lost.
func (r *Recovery) Reset(ctx context.Context, which []PartitionPosition) error {
	offsets := kadm.Offsets{}
	for _, p := range which {
		switch {
		case p.Target < 0 || p.Target > p.Group:
			return fmt.Errorf("kafka: topic %s, partition %d: the group is at %d, and the target %d is not before it", p.Topic, p.Partition, p.Group, p.Target)
		case p.Target == p.Group: // only the store needs a change
			continue
		case p.Target < p.Start:
			return fmt.Errorf("kafka: topic %s, partition %d: offset %d is no longer in the log, which begins at %d", p.Topic, p.Partition, p.Target, p.Start)
		}
		offsets.Add(kadm.Offset{Topic: p.Topic, Partition: p.Partition, At: p.Target, LeaderEpoch: -1, Metadata: p.metadata})
	}
	if len(offsets) > 0 {
		if err := r.commit(ctx, offsets); err != nil {
			return err
		}
	}
	return r.raise(ctx, which, func(p PartitionPosition) int64 { return p.Target })
}

func (r *Recovery) commit(ctx context.Context, offsets kadm.Offsets) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := kadm.NewClient(r.brokers.client()).CommitAllOffsets(ctx, r.config.Group, offsets)
	for _, living := range []error{kerr.UnknownMemberID, kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.StaleMemberEpoch} {
		if errors.Is(err, living) {
			return fmt.Errorf("kafka: group %s has members, so nothing was set: stop all processes of consumer %s; a killed process stays a member until its session ends (%v): %w",
				r.config.Group, r.consumer, r.config.SessionTimeout, err)
		}
	}
	if err != nil {
		return explain(err, "", r.config.Group)
	}
	return nil
}

// Accept raises the store's positions of the given partitions to the group's offsets. The missing effects are then
// lost, and later comparisons do not report them again.
func (r *Recovery) Accept(ctx context.Context, which []PartitionPosition) error {
	return r.raise(ctx, which, func(p PartitionPosition) int64 { return p.Group })
}

// The function at returns the wanted position of a partition. raise raises each position in the store that is lower
// than the wanted position.
func (r *Recovery) raise(ctx context.Context, which []PartitionPosition, at func(PartitionPosition) int64) error {
	var to []laneoffset.Advance
	for _, p := range which {
		if at(p) > p.Store {
			to = append(to, laneoffset.Advance{LaneOffset: laneoffset.LaneOffset{Lane: r.positionName(p), Offset: at(p)}, Least: laneoffset.None})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if _, err := r.store.AdvanceOffsets(ctx, r.consumer, to); err != nil {
		return r.storeFailed(err)
	}
	return nil
}
