//go:build linux

package proofkafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// publication is what the broker acknowledged, as the topic has it.
type publication struct {
	records int
	// settled says by id whether the group has passed a record of it.
	settled map[string]bool
}

// readTopic reads the topic from its beginning to these ends.
func readTopic(ctx context.Context, brokers []string, ends, committed map[int32]int64) (publication, error) {
	p := publication{settled: map[string]bool{}}
	from, left := map[int32]kgo.Offset{}, map[int32]int64{}
	for partition, end := range ends {
		if end > 0 {
			from[partition], left[partition] = kgo.NewOffset().AtStart(), end
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return p, err
	}
	defer client.Close()
	for len(left) > 0 {
		fetched := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		if failures := fetched.Errors(); len(failures) > 0 {
			return p, fmt.Errorf("read the topic: %w", failures[0].Err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				p.add(r, committed[r.Partition])
			}
			if r.Offset+1 >= ends[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return p, nil
}

func (p *publication) add(r *kgo.Record, committed int64) {
	p.records++
	for _, h := range r.Headers {
		if h.Key == "ce_id" {
			p.settled[string(h.Value)] = p.settled[string(h.Value)] || r.Offset < committed
		}
	}
}
