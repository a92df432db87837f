package operate

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel/kafka"
)

// PositionView shows the positions of a partition in the store and in the consumer group, and what a
// reset would do.
type PositionView struct {
	Consumer  string `json:"consumer"`
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// Standing compares the two positions: level, behind, ahead, unknown or not_begun.
	Standing string `json:"standing"`
	// StoreAt and GroupAt are the first offset that is not done; nil if unknown.
	StoreAt *int64 `json:"store_at"`
	GroupAt *int64 `json:"group_at"`
	// LogStart is the offset of the log's first record, LogEnd the offset after its last.
	LogStart int64 `json:"log_start"`
	LogEnd   int64 `json:"log_end"`
	// To is the offset to which a reset sets the group; nil if nothing is to be set, or the offset is
	// unknown.
	To *int64 `json:"to"`
	// Missing counts the records whose effects may be missing, Gone those of them that have left the log.
	Missing int64 `json:"missing"`
	Gone    int64 `json:"gone"`
	// Result is Level if nothing is to be done, otherwise Done, Would or Refused.
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`

	position kafka.PartitionPosition
}

// Name returns the name of the partition.
func (v PositionView) Name() string { return fmt.Sprintf("%s/%d", v.Topic, v.Partition) }

// OK reports whether the partition needs no further command.
func (v PositionView) OK() bool { return v.Result != Refused && v.Result != Failed }

// Ahead reports whether the group is known to be ahead of the store.
func (v PositionView) Ahead() bool {
	return v.position.Standing == kafka.Behind || v.position.Standing == kafka.Ahead
}

// ByPerson reports whether a person has set the group's offset. A Setting without Ahead does not
// change such a partition.
func (v PositionView) ByPerson() bool { return v.position.Standing == kafka.Ahead }

// Setting says which partitions to set after a restore.
type Setting struct {
	// LogStart accepts the loss of records that have left the log. A partition unknown to the store is
	// then read from the beginning of the log.
	LogStart bool
	// Ahead also sets back partitions whose offset was set by a person.
	Ahead bool
	// Accept accepts the effects missing in the store, instead of setting the group back.
	Accept bool
	// DryRun only reports what would be set.
	DryRun bool
}

// Positions are the partitions of a consumer.
func Positions(ctx context.Context, consumer, group string, r *kafka.Recovery) ([]PositionView, error) {
	all, err := r.Compare(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]PositionView, len(all))
	for i, p := range all {
		views[i] = PositionView{
			Consumer: consumer, Group: group, Topic: p.Topic, Partition: p.Partition, Standing: p.Standing.String(),
			StoreAt: known(p.Store), GroupAt: known(p.Group), LogStart: p.Start, LogEnd: p.End, Missing: p.Missing(), Gone: p.Gone(), position: p,
		}
		if views[i].Ahead() {
			views[i].To = known(p.Target)
		}
	}
	return views, nil
}

func known(offset int64) *int64 {
	if offset < 0 {
		return nil
	}
	return &offset
}

// Plan returns the partitions whose offset in the group must be set, with the new offset in To. If a
// partition cannot be set, its Result is Refused, and its Error says why. Plan changes no offset.
func (s Setting) Plan(all []PositionView) (chosen []PositionView) {
	for _, v := range all {
		if v.position.Standing != kafka.Behind && !(s.Ahead && v.ByPerson()) {
			continue
		}
		v.Result = Would
		switch nowhere := v.position.Target < 0; {
		case s.Accept:
			v.To = known(v.position.Group)
		case (nowhere || v.Gone > 0) && s.LogStart:
			v.position.Target = min(v.LogStart, v.position.Group)
			v.To = known(v.position.Target)
		case nowhere:
			v.Result, v.Error = Refused, "the store knows neither a position nor where the group began; --log-start reads the log from its beginning"
		case v.Gone > 0:
			v.Result, v.Error = Refused, fmt.Sprintf("%d records before offset %d have left the log, and their effects are lost; --log-start continues after them", v.Gone, v.LogStart)
		}
		chosen = append(chosen, v)
	}
	return chosen
}

// Set sets the planned partitions of one consumer.
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

// mostRecorded limits the partitions named in the recorded command.
const mostRecorded = 100

// Record names the partitions that are set, for the recorded command.
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
