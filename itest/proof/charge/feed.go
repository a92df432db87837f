//go:build unix

package charge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/provider"
)

// producers publish side by side.
const producers = 2

// publish begins to publish.
func (r *run) publish(ctx context.Context) (*proof.Publisher, error) {
	plan := r.plan()
	return proof.Publish(ctx, producers, func(ctx context.Context, p *proof.Publisher) { r.pace(ctx, p, plan) },
		kgo.SeedBrokers(r.brokers.Brokers()...), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(5*time.Millisecond))
}

// plan lists the payments in the order in which they are published: each once, and copies
// some way behind.
func (p Proof) plan() []int {
	random := rand.New(rand.NewPCG(p.Seed, 7))
	type place struct{ payment, at int }
	var all []place
	for i := range p.Payments {
		all = append(all, place{i, 2 * i})
	}
	for range p.Duplicates {
		i := random.IntN(p.Payments)
		all = append(all, place{i, 2*(i+random.IntN(1000)) + 1})
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	payments := make([]int, len(all))
	for i, p := range all {
		payments[i] = p.payment
	}
	return payments
}

// reference is a payment's, and the id of its order.
func reference(payment int) string { return fmt.Sprintf("order-%06d", payment) }

// record is an order as a CloudEvent. Copies go to any partition, so that two processes
// can hold copies at once.
func record(payment int, random *rand.Rand) *kgo.Record {
	id := reference(payment)
	body, err := json.Marshal(provider.Payment{Reference: id, Card: fmt.Sprintf("card-%d", payment%500), Cents: int64(100 + payment%10_000)})
	if err != nil {
		panic(err) // two texts and a number
	}
	header := func(name, value string) kgo.RecordHeader {
		return kgo.RecordHeader{Key: name, Value: []byte(value)}
	}
	return &kgo.Record{Partition: random.Int32N(partitions), Key: []byte(id), Value: body, Headers: []kgo.RecordHeader{
		header("ce_specversion", "1.0"), header("ce_id", id), header("ce_source", "shop"),
		header("ce_type", "order.placed"), header("content-type", "application/json"),
	}}
}

// pace publishes evenly.
func (r *run) pace(ctx context.Context, p *proof.Publisher, plan []int) {
	random := rand.New(rand.NewPCG(r.Seed, 6))
	p.Evenly(ctx, len(plan), r.Publish, func(i int) { p.Send(ctx, random.IntN(producers), record(plan[i], random)) })
}
