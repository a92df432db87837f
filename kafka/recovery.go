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

// Standing is how the store's position of a partition compares with the group's offset.
type Standing uint8

// Standings.
const (
	// Level: the store has everything that the group counts as settled.
	Level Standing = iota
	// Behind: the store has lost data. Effects are missing.
	Behind
	// Ahead: the group's offset was set by an operator, or committed by an older release, to a later offset than the
	// store has. Only the operator can know whether effects are missing.
	Ahead
	// Unknown: the store has no position of the partition, and the group's offset does not say that it should.
	Unknown
	// NotBegun: the group has no offset.
	NotBegun
)

// String returns the word for s on the command line.
func (s Standing) String() string {
	return enum.Name([]string{"level", "behind", "ahead", "unknown", "not_begun"}, s, "Standing")
}

// PartitionPosition is how far a partition is processed according to the store and to the group.
type PartitionPosition struct {
	Topic     string
	Partition int32
	Standing  Standing
	// Store and Group are offsets of the first unprocessed record; laneoffset.None if there is none.
	Store, Group int64
	// Start and End are the offset of the first record in the log, and the offset after the last one.
	Start, End int64
	// Target is the offset to which the group must be set back so that missing effects are applied: the store's
	// position, or, without one, where the group first began. laneoffset.None if that is not known either.
	Target int64

	id       [16]byte
	metadata string
}

// Missing returns how many records may lack their effects: from Target, or from offset 0 if Target is not known, to the
// group's offset.
func (p PartitionPosition) Missing() int64 {
	if p.Standing != Behind && p.Standing != Ahead {
		return 0
	}
	return max(p.Group-max(p.Target, 0), 0)
}

// Gone returns how many of these records are no longer in the log, so that their effects cannot be recovered.
func (p PartitionPosition) Gone() int64 {
	if p.Missing() == 0 {
		return 0
	}
	return max(min(p.Start, p.Group)-max(p.Target, 0), 0)
}

// Recovery compares the positions in a consumer's store with the group's offsets, and makes them equal after the store
// was restored. The group must have no members during this. Close it after use.
type Recovery struct {
	bystander
	consumer string
	store    laneoffset.Store
}

// NewRecovery checks the configuration, which is the consumer's own. NewRecovery sends no
// requests.
func NewRecovery(c Config, consumer string, store laneoffset.Store) (*Recovery, error) {
	r := &Recovery{consumer: consumer, store: store}
	if err := r.configure(c); err != nil {
		return nil, err
	}
	return r, nil
}

// Close closes the connections.
func (r *Recovery) Close() { r.close() }

// Compare returns the position of each partition of the topics that are read, by topic and number.
func (r *Recovery) Compare(ctx context.Context) ([]PartitionPosition, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, ids, err := r.ask(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	// Requested before the ends of the logs, so that no offset of the group is after an end.
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
	if err := r.stand(ctx, all); err != nil {
		return nil, err
	}
	return all, nil
}

// stand adds the store's positions, and the resulting standings of the partitions.
func (r *Recovery) stand(ctx context.Context, all []PartitionPosition) error {
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
		one.Standing = standing(*one)
		if one.Target = one.Store; one.Store < 0 {
			if one.Target, err = r.began(ctx, begun, topicPartition{one.Topic, one.Partition}, one.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// positionName returns the name of a partition's position in the store.
func (r *Recovery) positionName(p PartitionPosition) string {
	return stored.PartitionName(r.config.Group, topicPartition{p.Topic, p.Partition}.lane(), p.id)
}

func standing(p PartitionPosition) Standing {
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

// began returns where the group began a partition, as stored; laneoffset.None if unknown.
func (r *Recovery) began(ctx context.Context, known map[string]stored.Beginning, p topicPartition, id [16]byte) (int64, error) {
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
		return 0, nil // it is read from its beginning
	}
	return began.Starts[p.partition], nil
}

func (r *Recovery) storeFailed(err error) error {
	return fmt.Errorf("the store of consumer %s: %w", r.consumer, err)
}

// Reset sets the group's offsets back to the Targets of these partitions, never forward. Reset fails if the group
// has members, and then sets nothing. If a Target is no longer in the log, the caller must replace it with Start,
// and so gives up the records that are Gone.
func (r *Recovery) Reset(ctx context.Context, which []PartitionPosition) error {
	offsets := kadm.Offsets{}
	for _, p := range which {
		switch {
		case p.Target < 0 || p.Target > p.Group:
			return fmt.Errorf("kafka: topic %s, partition %d: the group is at %d, and the target %d is not before it", p.Topic, p.Partition, p.Group, p.Target)
		case p.Target == p.Group: // the group is there already; only the store is changed
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

// Accept raises the store's positions of these partitions to the group's offsets: the missing effects are given up, and
// are not reported again.
func (r *Recovery) Accept(ctx context.Context, which []PartitionPosition) error {
	return r.raise(ctx, which, func(p PartitionPosition) int64 { return p.Group })
}

// raise raises the store's positions that are lower than at.
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
