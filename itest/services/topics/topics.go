// Package topics gives tests direct access to Kafka. The package writes and reads topics and the offsets of groups,
// independently of the consumer under test.
package topics

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The maximum duration of a request, including a restart of the broker.
const patience = time.Minute

// Cluster is a connection to a Kafka cluster. The methods of Cluster fail the test on errors.
type Cluster struct {
	t       testing.TB
	options []kgo.Opt
	client  *kgo.Client
	// Admin is a client for requests for which Cluster has no method.
	Admin *kadm.Client
}

// Open connects to a cluster. The connection is closed when the test ends. Each record goes to the partition that the
// record names.
func Open(t testing.TB, brokers []string, options ...kgo.Opt) *Cluster {
	t.Helper()
	options = append(append(services.Patient(), kgo.SeedBrokers(brokers...), kgo.DisableClientMetrics()), options...)
	client := must.Get(kgo.NewClient(append([]kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())}, options...)...))(t)
	t.Cleanup(client.Close)
	return &Cluster{t: t, options: options, client: client, Admin: kadm.NewClient(client)}
}

// Name returns a unique name for a group.
func Name() string { return "semel-" + strings.ToLower(rand.Text()) }

// Record returns a record with the header "id". If id is empty, the record does not have this header.
func Record(topic string, partition int32, id, value string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte("key of " + id), Value: []byte(value)}
	if id != "" {
		r.Headers = []kgo.RecordHeader{{Key: "id", Value: []byte(id)}}
	}
	return r
}

// Produce writes records and returns when all replicas have the records. Produce also sets the offsets of the records.
func (c *Cluster) Produce(records ...*kgo.Record) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must.OK(c.t, c.client.ProduceSync(ctx, records...).FirstErr())
}

// Ends returns the offset after the last record of each partition.
func (c *Cluster) Ends(topic string) map[int32]int64 {
	c.t.Helper()
	return c.retryAsk(func(ctx context.Context) (map[int32]int64, error) {
		listed, err := c.Admin.ListEndOffsets(ctx, topic)
		return offsets(listed, err, topic)
	})
}

// Starts returns the offset of the first record of each partition.
func (c *Cluster) Starts(topic string) map[int32]int64 {
	c.t.Helper()
	return c.retryAsk(func(ctx context.Context) (map[int32]int64, error) {
		listed, err := c.Admin.ListStartOffsets(ctx, topic)
		return offsets(listed, err, topic)
	})
}

func offsets(listed kadm.ListedOffsets, err error, topic string) (map[int32]int64, error) {
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("the offsets of topic %s: %w", topic, err)
	}
	offsets := map[int32]int64{}
	for partition, o := range listed[topic] {
		offsets[partition] = o.Offset
	}
	return offsets, nil
}

// Committed returns the committed offsets of a group, for the partitions that have a committed offset.
func (c *Cluster) Committed(group, topic string) map[int32]int64 {
	c.t.Helper()
	return c.retryAsk(func(ctx context.Context) (map[int32]int64, error) { return c.TryCommitted(ctx, group, topic) })
}

// retryAsk calls the function ask until ask succeeds. At first, ask may fail, because a broker has just
// started or a topic has just been created.
func (c *Cluster) retryAsk(ask func(context.Context) (map[int32]int64, error)) map[int32]int64 {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		offsets, err := ask(ctx)
		if err == nil {
			return offsets
		}
		var answer *kerr.Error
		if !errors.As(err, &answer) || !answer.Retriable {
			c.t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			c.t.Fatal(err)
		case <-tick.C:
		}
	}
}

// TryCommitted is like Committed, but returns an error if brokers are not available.
func (c *Cluster) TryCommitted(ctx context.Context, group, topic string) (map[int32]int64, error) {
	listed, err := c.Admin.FetchOffsets(ctx, group)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("the offsets of group %s: %w", group, err)
	}
	offsets := map[int32]int64{}
	for partition, o := range listed[topic] {
		offsets[partition] = o.At
	}
	return offsets, nil
}

// TryBehind returns the number of records between the committed offsets of a group and the ends of the partitions. If
// brokers are not available, TryBehind returns an error.
func (c *Cluster) TryBehind(ctx context.Context, group, topic string) (behind int64, err error) {
	committed, err := c.TryCommitted(ctx, group, topic)
	if err != nil {
		return 0, err
	}
	listed, err := c.Admin.ListEndOffsets(ctx, topic)
	ends, err := offsets(listed, err, topic)
	for partition, end := range ends {
		at := max(committed[partition], 0)
		behind += max(end-at, at-end)
	}
	return behind, err
}

// Read returns all records of a topic up to its current end, by partition and offset, without a
// group. Records of aborted transactions are left out.
func (c *Cluster) Read(topic string) []*kgo.Record {
	c.t.Helper()
	var all []*kgo.Record
	c.Each(topic, func(r *kgo.Record) { all = append(all, r) })
	slices.SortFunc(all, func(a, b *kgo.Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	return all
}

// Each is like Read, for topics that do not fit in memory. Each calls the function do with each record, in order within
// each partition.
func (c *Cluster) Each(topic string, do func(*kgo.Record)) {
	c.t.Helper()
	ends := c.Ends(topic)
	from := map[int32]kgo.Offset{}
	for partition, start := range c.Starts(topic) {
		if start < ends[partition] {
			from[partition] = kgo.NewOffset().At(start)
		}
	}
	if len(from) == 0 {
		return
	}
	reader, err := kgo.NewClient(append(slices.Clone(c.options), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))...)
	must.OK(c.t, err)
	defer reader.Close()
	for partitions := len(from); partitions > 0; {
		c.poll(reader, func(r *kgo.Record) {
			if r.Offset == ends[r.Partition]-1 {
				partitions--
			}
			if r.Offset < ends[r.Partition] && !r.Attrs.IsControl() {
				do(r)
			}
		})
	}
}

// poll waits for records and calls the function do with each record.
func (c *Cluster) poll(reader *kgo.Client, do func(*kgo.Record)) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fetches := reader.PollFetches(ctx)
	if err := ctx.Err(); err != nil {
		c.t.Fatalf("read a topic to its end: %v", err)
	}
	fetches.EachRecord(do)
}

// Header returns the value of a record's header, or "" if the record has no such header.
func Header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
