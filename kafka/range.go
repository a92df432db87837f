package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/twmb/franz-go/pkg/kadm"
)

// ErrRange is wrapped by the error for removed records of a range, and by the error for a topic that was deleted and
// created again.
var ErrRange = errors.New("kafka: the records to be read again have changed")

// Bound is the begin or the end of a range. The zero value is the begin or the end of each partition's log.
type Bound struct {
	// Time, if not zero, selects by time: the bound is before the first record with this time or a later time.
	Time time.Time
	// Offsets maps the names of lanes ("orders/0") to offsets. A partition without an entry is not in the
	// range.
	Offsets map[string]int64
}

// Range reads records of topics again, from one bound to another. A Range does not affect the group that
// consumes the topics: it joins no group and commits nothing. Close the Range after use.
type Range struct{ bystander }

// NewRange checks the configuration, which must be the configuration of the consumer. NewRange sends no requests.
func NewRange(c Config) (*Range, error) {
	r := &Range{}
	if err := r.configure(c); err != nil {
		return nil, err
	}
	return r, nil
}

// Close closes the connections.
func (r *Range) Close() { r.close() }

// bystander sends requests about a consumer's topics, but is not a member of the consumer group.
type bystander struct {
	config  Config
	brokers brokers
	topics  *topics
}

// configure checks the configuration, which must be the configuration of the consumer. configure sends no requests.
func (b *bystander) configure(c Config) error {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	c.DeadLetters = "" // a bystander writes no dead letters
	b.config, b.brokers.config = c, &b.config
	m := &member{}
	b.topics = newTopics(&b.config, &b.brokers, m, &faultList{config: &b.config, member: m, gate: &gate{}})
	return nil
}

func (b *bystander) close() {
	b.brokers.markClosed()
	b.brokers.close()
}

// Lanes returns the partitions that have records between the two bounds at the time of the call. Records of open
// transactions do not count, as for the group. The result contains the id of the topic in the field Is of each lane.
func (r *Range) Lanes(ctx context.Context, from, to Bound) ([]admin.ReplayLane, error) {
	logs, err := r.listLogs(ctx)
	if err != nil {
		return nil, err
	}
	begins, err := r.boundOffsets(ctx, logs, from, func(l log) int64 { return l.start })
	if err != nil {
		return nil, err
	}
	ends, err := r.boundOffsets(ctx, logs, to, func(l log) int64 { return l.end })
	if err != nil {
		return nil, err
	}
	var lanes []admin.ReplayLane
	for _, l := range logs {
		begin, chosen := begins[l.topicPartition]
		end, ends := ends[l.topicPartition]
		begin, end = max(begin, l.start), min(end, l.end)
		if !chosen || !ends || begin >= end {
			continue
		}
		lanes = append(lanes, admin.ReplayLane{Lane: l.lane(), Is: fmt.Sprintf("%x", l.id), From: begin, To: end, After: begin - 1})
	}
	return lanes, errors.Join(r.unknownLanes(logs, from), r.unknownLanes(logs, to))
}

// unknownLanes returns an error that names the partitions of a bound that do not exist.
func (r *Range) unknownLanes(logs []log, b Bound) error {
	var errs error
	for name := range b.Offsets {
		if !slices.ContainsFunc(logs, func(l log) bool { return l.lane() == name }) {
			errs = errors.Join(errs, fmt.Errorf("kafka: there is no partition %s among those that the consumer reads", name))
		}
	}
	return errs
}

// log contains the first offset and the end offset of a partition's log.
type log struct {
	topicPartition
	id         [16]byte
	start, end int64
}

// ask requests the metadata of the topics. The results are the names and ids of the topics that are read.
func (b *bystander) ask(ctx context.Context) (names []string, ids map[string][16]byte, err error) {
	if _, err := b.brokers.openClient(func() {}); err != nil {
		return nil, nil, err
	}
	if err := b.topics.ask(ctx); err != nil {
		return nil, nil, err
	}
	return b.topics.topicsRead(), b.topics.allIDs(), nil
}

// logsOf returns the logs of all partitions of topics, ordered by topic and number. The parameter ends is the function
// that requests the end offsets.
func (b *bystander) logsOf(ctx context.Context, names []string, ids map[string][16]byte, ends func(*kadm.Client) (kadm.ListedOffsets, error)) (all []log, err error) {
	ask := kadm.NewClient(b.brokers.client())
	starts, err := allListed(ask.ListStartOffsets(ctx, names...))
	if err != nil {
		return nil, explain(err, names[0], b.config.Group)
	}
	found, err := allListed(ends(ask))
	if err != nil {
		return nil, explain(err, names[0], b.config.Group)
	}
	starts.Each(func(o kadm.ListedOffset) {
		end, _ := found.Lookup(o.Topic, o.Partition)
		all = append(all, log{topicPartition{o.Topic, o.Partition}, ids[o.Topic], o.Offset, end.Offset})
	})
	slices.SortFunc(all, func(a, b log) int { return a.compare(b.topicPartition) })
	return all, nil
}

// listLogs returns the logs of all partitions, up to the last record that the group could read now.
func (r *Range) listLogs(ctx context.Context) ([]log, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, ids, err := r.ask(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return r.logsOf(ctx, names, ids, func(ask *kadm.Client) (kadm.ListedOffsets, error) {
		return r.config.endOffsets(ctx, ask, names...)
	})
}

// boundOffsets returns the offset of a bound in each partition. If a bound has no offset for a partition, the partition
// is missing in the result.
func (r *Range) boundOffsets(ctx context.Context, logs []log, b Bound, otherwise func(log) int64) (map[topicPartition]int64, error) {
	found := map[topicPartition]int64{}
	if b.Time.IsZero() {
		for _, l := range logs {
			if offset, named := b.Offsets[l.lane()]; named || b.Offsets == nil {
				if !named {
					offset = otherwise(l)
				}
				found[l.topicPartition] = offset
			}
		}
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var all []topicPartition
	for _, l := range logs {
		all = append(all, l.topicPartition)
	}
	found, err := r.brokers.listOffsets(ctx, all, b.Time.UnixMilli(), false)
	for _, l := range logs {
		if at, known := found[l.topicPartition]; known && at < 0 { // no record has this time or a later time
			found[l.topicPartition] = l.end
		}
	}
	return found, err
}

// Check returns an error that wraps ErrRange if unread records of the given lanes were removed, or if a topic was
// created again.
func (r *Range) Check(ctx context.Context, lanes []admin.ReplayLane) error {
	logs, err := r.listLogs(ctx)
	if err != nil {
		return err
	}
	var errs error
	for _, l := range lanes {
		next := max(l.From, l.After+1)
		i := slices.IndexFunc(logs, func(found log) bool { return found.lane() == l.Lane })
		switch {
		case next >= l.To:
		case i < 0:
			errs = errors.Join(errs, fmt.Errorf("partition %s does not exist any more: %w", l.Lane, ErrRange))
		case fmt.Sprintf("%x", logs[i].id) != l.Is:
			errs = errors.Join(errs, fmt.Errorf("partition %s belongs to a topic that was deleted and created again: %w", l.Lane, ErrRange))
		case logs[i].start > next:
			errs = errors.Join(errs, fmt.Errorf("partition %s now begins at offset %d: records from %d on are gone: %w", l.Lane, logs[i].start, next, ErrRange))
		case logs[i].end < l.To:
			errs = errors.Join(errs, fmt.Errorf("partition %s ends at offset %d, but ended at %d before: %w", l.Lane, logs[i].end, l.To, ErrRange))
		}
	}
	return errs
}
