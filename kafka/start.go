package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

var errNoStore = errors.New("kafka: Start is set, and where it leads must be kept in the consumer's store: call Positions with it before Fetch, as consumer.Consumer does")

// firstStarts finds where Start leads at the first join of a topic, for the
// partitions it is for. Where the group has an offset already, that is the
// place. It reports whether the group has any.
func (b *beginnings) firstStarts(ctx context.Context, topic string) (starts []int64, own bool, err error) {
	if b.config.Start == (Start{}) {
		return nil, false, nil
	}
	if b.store.Positions == nil {
		return nil, false, errNoStore
	}
	ask := kadm.NewClient(b.brokers.client())
	offsets, err := ask.FetchOffsets(ctx, b.config.Group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, false, explain(err, topic, b.config.Group)
	}
	ends, err := ask.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, false, explain(err, topic, b.config.Group)
	}
	known := offsets[topic]
	n := len(ends[topic])
	if len(known) > 0 { // the group reads it already, and Start was for as many as its offsets say
		n = min(n, marked(known))
	}
	starts, err = b.startsOf(ctx, ask, topic, known, n)
	return starts, len(known) > 0, err
}

// marked is for how many partitions Start was, as the group's offsets say.
func marked(known map[int32]kadm.OffsetResponse) int {
	n := 0
	for _, o := range known {
		n = max(n, stored.MarkedStarts(o.Metadata))
	}
	return n
}

// startsOf are the group's own offsets of n partitions and, where it has none,
// where Start leads; that is asked for only if it is needed.
func (b *beginnings) startsOf(ctx context.Context, ask *kadm.Client, topic string, known map[int32]kadm.OffsetResponse, n int) ([]int64, error) {
	starts := make([]int64, n)
	var begin kadm.ListedOffsets
	for i := range starts {
		p := int32(i)
		if o, found := known[p]; found && o.At >= 0 {
			starts[i] = o.At
			continue
		}
		if begin == nil {
			var err error
			if begin, err = b.startOffsets(ctx, ask, topic); err != nil {
				return nil, err
			}
		}
		if at, found := begin.Lookup(topic, p); found {
			starts[i] = max(at.Offset, 0)
		}
	}
	return starts, nil
}

// startOffsets are where the partitions of a topic begin by Start.
func (b *beginnings) startOffsets(ctx context.Context, ask *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	var offsets kadm.ListedOffsets
	var err error
	switch start := b.config.Start; {
	case start.Now && b.config.ReadUncommitted:
		offsets, err = ask.ListEndOffsets(ctx, topic)
	case start.Now: // what an open transaction holds was not to be read yet
		offsets, err = ask.ListCommittedOffsets(ctx, topic)
	case start.Group == "":
		offsets, err = ask.ListOffsetsAfterMilli(ctx, start.At.UnixMilli(), topic)
	default:
		return b.othersOffsets(ctx, ask, topic)
	}
	if err != nil {
		return nil, err
	}
	return offsets, offsets.Error()
}

// othersOffsets are another group's offsets, or the beginning where it has none.
func (b *beginnings) othersOffsets(ctx context.Context, ask *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	offsets, err := ask.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	others, err := ask.FetchOffsets(ctx, b.config.Start.Group)
	switch {
	case errors.Is(err, kerr.GroupIDNotFound) || err == nil && len(others) == 0:
		return nil, fmt.Errorf("Start.Group is %s, and there is no such group with offsets; correct its name, or leave it out to begin at the beginning", b.config.Start.Group)
	case err != nil:
		return nil, explain(err, topic, b.config.Start.Group)
	}
	for partition, o := range others[topic] {
		if at, known := offsets.Lookup(topic, partition); known && o.At >= 0 {
			at.Offset = max(at.Offset, o.At)
			offsets[topic][partition] = at
		}
	}
	return offsets, offsets.Error()
}
