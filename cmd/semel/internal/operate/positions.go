package operate

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel/kafka"
)

// PositionView shows the position of a partition in the store and in the consumer group, and what a reset
// would do.
type PositionView struct {
	Consumer  string `json:"consumer"`
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// Standing compares the two positions: level, behind, ahead, unknown or not_begun.
	Standing string `json:"standing"`
	// StoreAt and GroupAt are the offsets of the first record that is not processed, according to the store
	// and the group; nil if unknown.
	StoreAt *int64 `json:"store_at"`
	GroupAt *int64 `json:"group_at"`
	// LogStart is the offset of the first record in the log. LogEnd is the offset after the last record.
	LogStart int64 `json:"log_start"`
	LogEnd   int64 `json:"log_end"`
	// To is the offset to which a reset sets the group; nil if the reset changes nothing or the offset is
	// unknown.
	To *int64 `json:"to"`
	// Missing is the number of records whose effects may be missing. Gone is the number of missing records that
	// the log no longer has.
	Missing int64 `json:"missing"`
	Gone    int64 `json:"gone"`
	// Result is Level if no reset is needed, otherwise Done, Would or Refused.
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`

	position kafka.PartitionPosition
}

// Name returns the name of the partition.
func (v PositionView) Name() string { return fmt.Sprintf("%s/%d", v.Topic, v.Partition) }

// OK reports whether the partition needs no further command.
func (v PositionView) OK() bool { return v.Result != Refused && v.Result != Failed }

// Ahead reports whether the group's offset is known to be ahead of the store's position.
func (v PositionView) Ahead() bool {
	return v.position.Standing == kafka.Behind || v.position.Standing == kafka.Ahead
}

// ByPerson reports whether a person set the group's offset. A Setting changes a partition whose offset a
// person set only if Setting.Ahead is set.
func (v PositionView) ByPerson() bool { return v.position.Standing == kafka.Ahead }

// Setting describes which partitions to set after a database restore.
type Setting struct {
	// LogStart accepts the loss of records that the log no longer has. If LogStart is set, a partition that is
	// unknown to the store is read from the start of the log.
	LogStart bool
	// Ahead also resets partitions whose offset a person has set.
	Ahead bool
	// Accept accepts the missing effects: the store takes over the group's position, and the group is not
	// reset.
	Accept bool
	// DryRun only reports what would be set.
	DryRun bool
}

// Positions returns the positions of a consumer's partitions.
func Positions(ctx context.Context, consumer, group string, r *kafka.Recovery) ([]PositionView, error) {
	all, err := r.Compare(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]PositionView, len(all))
	for i, p := range all {
		views[i] = PositionView{
			Consumer: consumer, Group: group, Topic: p.Topic, Partition: p.Partition, Standing: p.Standing.String(),
			StoreAt: offsetOrNil(p.Store), GroupAt: offsetOrNil(p.Group), LogStart: p.Start, LogEnd: p.End, Missing: p.Missing(), Gone: p.Gone(), position: p,
		}
		if views[i].Ahead() {
			views[i].To = offsetOrNil(p.Target)
		}
	}
	return views, nil
}

func offsetOrNil(offset int64) *int64 {
	if offset < 0 {
		return nil
	}
	return &offset
}

// Plan returns the partitions whose group offset must be set, with the new offset in To. If a partition
// cannot be set, Result is Refused and Error says why. Plan changes no offset.
func (s Setting) Plan(all []PositionView) (chosen []PositionView) {
	for _, v := range all {
		if v.position.Standing != kafka.Behind && !(s.Ahead && v.ByPerson()) {
			continue
		}
		v.Result = Would
		switch nowhere := v.position.Target < 0; {
		case s.Accept:
			v.To = offsetOrNil(v.position.Group)
		case (nowhere || v.Gone > 0) && s.LogStart:
			v.position.Target = min(v.LogStart, v.position.Group)
			v.To = offsetOrNil(v.position.Target)
		case nowhere:
			v.Result, v.Error = Refused, "the store knows neither a position nor where the group began; --log-start reads the log from its beginning"
		case v.Gone > 0:
			v.Result, v.Error = Refused, fmt.Sprintf("%d records before offset %d have left the log, and their effects are lost; --log-start continues after them", v.Gone, v.LogStart)
		}
		chosen = append(chosen, v)
	}
	return chosen
}

// Set sets the group offsets of the planned partitions of one consumer.
func (s Setting) Set(ctx context.Context, r *kafka.Recovery, planned []PositionView) error {
	var which []kafka.PartitionPosition
	for _, v := range planned {
		if v.Result == Would {
			which = append(which, v.position)
		}
	}
	set := r.Reset
	if s.Accept {
		set = r.Accept
	}
	if err := set(ctx, which); err != nil {
		return err
	}
	for i := range planned {
		if planned[i].Result == Would {
			planned[i].Result = Done
		}
	}
	return nil
}

// mostRecorded is the maximum number of partitions that the audit trail names for one command.
const mostRecorded = 100

// Record returns the text for the audit trail, which names the planned partitions.
func Record(planned []PositionView) string {
	var parts []string
	for _, v := range planned {
		if v.Result != Would {
			continue
		}
		if len(parts) == mostRecorded {
			parts = append(parts, "…")
			break
		}
		store := "nothing"
		if v.StoreAt != nil {
			store = fmt.Sprint(*v.StoreAt)
		}
		parts = append(parts, fmt.Sprintf("%s store %s, group %d, to %d", v.Name(), store, *v.GroupAt, *v.To))
	}
	return strings.Join(parts, "; ")
}
