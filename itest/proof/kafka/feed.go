//go:build unix

package kafka

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/webhooks"
)

// producers publish side by side, so that copies of one event can come from
// two of them.
const producers = 3

// publish begins to publish.
func (r *run) publish(ctx context.Context) (*proof.Publisher, error) {
	plan := r.plan()
	return proof.Publish(ctx, producers, func(ctx context.Context, p *proof.Publisher) { r.pace(ctx, p, plan) },
		kgo.SeedBrokers(r.brokers.Brokers()...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerLinger(5*time.Millisecond))
}

// plan lists the events in the order in which they are published: each once,
// and copies some way behind.
func (r *run) plan() []int {
	random := rand.New(rand.NewPCG(r.Seed, 7))
	type place struct{ event, at int }
	var all []place
	for i := range r.Events {
		at := 2 * i
		if r.Order {
			if at = r.place(i, r.places[i], random); r.places[i].filled() {
				continue
			}
		}
		all = append(all, place{i, at})
	}
	for range r.Duplicates {
		i := random.IntN(r.Events)
		if r.Order && r.places[i].filled() {
			continue
		}
		all = append(all, place{i, 2*(i+random.IntN(5000)) + 1})
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	events := make([]int, len(all))
	for i, p := range all {
		events[i] = p.event
	}
	return events
}

// eventSource is what the producer sets as the events' source.
const eventSource = "https://api.github.com"

// record is an event as a CloudEvent in binary mode. Copies go to any
// partition, so that two members can hold copies at once.
func (r *run) record(event int, random *rand.Rand) *kgo.Record {
	hook := r.Webhooks[event%len(r.Webhooks)]
	header := func(name, value string) kgo.RecordHeader {
		return kgo.RecordHeader{Key: name, Value: []byte(value)}
	}
	record := &kgo.Record{
		Partition: random.Int32N(int32(r.Partitions)), Key: []byte(hook.Repository), Value: hook.Body,
		Headers: []kgo.RecordHeader{
			header("ce_specversion", "1.0"), header("ce_id", webhooks.ID(event)), header("ce_source", eventSource),
			header("ce_type", hook.Event), header("content-type", "application/json"),
		},
	}
	if r.Order {
		r.ordered(record, event)
	}
	return record
}

// pace publishes evenly.
func (r *run) pace(ctx context.Context, p *proof.Publisher, plan []int) {
	random := rand.New(rand.NewPCG(r.Seed, 6))
	p.Evenly(ctx, len(plan), r.Publish, func(i int) {
		producer := random.IntN(producers)
		if r.Keys { // its order is that of its key's producer
			producer = r.places[plan[i]].stream % producers
		}
		p.Send(ctx, producer, r.record(plan[i], random))
	})
}
