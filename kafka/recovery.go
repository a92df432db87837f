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

// Standing says how the store stands to the group in a partition.
type Standing uint8

// The standings.
const (
	// Level: the store has all that the group counts as settled.
	Level Standing = iota
	// Behind: the store has lost what it had. Effects are missing.
	Behind
	// Ahead: the group's offset was set by a person, or committed by an older
	// release, to behind what the store knows. Whether effects are missing is known
	// to who set it.
	Ahead
	// Unknown: the store has no position of the partition, and the group's offset
	// does not say that it should.
	Unknown
	// NotBegun: the group has no offset.
	NotBegun
)

// String is the word that the command line has for it.
func (s Standing) String() string {
	return enum.Name([]string{"level", "behind", "ahead", "unknown", "not_begun"}, s, "Standing")
}

// PartitionPosition is how far a partition is done, as store and group know it.
type PartitionPosition struct {
	Topic     string
	Partition int32
	Standing  Standing
	// Store and Group are offsets of the first record that is not done;
	// laneoffset.None where there is none.
	Store, Group int64
	// Start and End are those of the log: of its first record, and behind its last.
	Start, End int64
	// Target is where the group has to be set back to, so that what the store lacks
	// comes again: to the store's position, or, where it has none, to where the group
	// first began. laneoffset.None where that is not known either.
	Target int64

	id       [16]byte
	metadata string
}

// Missing is how many records may lack their effects: those from Target, or from offset 0 if
// that is not known, to the group's offset.
func (p PartitionPosition) Missing() int64 {
	if p.Standing != Behind && p.Standing != Ahead {
		return 0
	}
	return max(p.Group-max(p.Target, 0), 0)
}

// Gone is how many of those are no longer in the log, and lost for ever.
func (p PartitionPosition) Gone() int64 {
	if p.Missing() == 0 {
		return 0
	}
	return max(min(p.Start, p.Group)-max(p.Target, 0), 0)
}

// Recovery compares what a consumer's store knows of its partitions with the group's
// offsets, and sets one to the other after the store was restored. Nobody may be a
// member of the group meanwhile. Close it.
type Recovery struct {
	bystander
	consumer string
	store    laneoffset.Store
}

// NewRecovery checks the configuration, which is the consumer's own, and asks
// nothing yet.
func NewRecovery(c Config, consumer string, store laneoffset.Store) (*Recovery, error) {
	r := &Recovery{consumer: consumer, store: store}
	if err := r.configure(c); err != nil {
		return nil, err
	}
	return r, nil
}

// Close ends the connections.
func (r *Recovery) Close() { r.close() }

// Compare returns the position of each partition of the topics that are read, by topic and number.
func (r *Recovery) Compare(ctx context.Context) ([]PartitionPosition, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, ids, err := r.ask(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	// Before the ends of the logs, so that no offset of the group is behind an end.
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

// stand fills in what the store knows, and what follows from it.
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

// positionName names the position of a partition in the store.
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

// began is where the group began a partition, as the store remembers it;
// laneoffset.None where it does not.
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

// Reset sets the group's offsets back to the Targets of these partitions, and never
// forward. It fails while the group has members; nothing is set then. A Target that
// has left the log is the caller's to replace with Start, which gives up what is
// Gone.
func (r *Recovery) Reset(ctx context.Context, which []PartitionPosition) error {
	offsets := kadm.Offsets{}
	for _, p := range which {
		switch {
		case p.Target < 0 || p.Target > p.Group:
			return fmt.Errorf("kafka: topic %s, partition %d: the group is at %d, and %d is not before it", p.Topic, p.Partition, p.Group, p.Target)
		case p.Target == p.Group: // it is there; only the store is told
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
			return fmt.Errorf("kafka: group %s has members, and nothing was set: stop all processes of consumer %s; one that was killed is a member until its session has ended (%v): %w",
				r.config.Group, r.consumer, r.config.SessionTimeout, err)
		}
	}
	if err != nil {
		return explain(err, "", r.config.Group)
	}
	return nil
}

// Accept raises the store's positions of these partitions to the group's offsets:
// what the store lacks is left out, and is not noticed again.
func (r *Recovery) Accept(ctx context.Context, which []PartitionPosition) error {
	return r.raise(ctx, which, func(p PartitionPosition) int64 { return p.Group })
}

// raise raises the store's positions to at, where they are lower.
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
