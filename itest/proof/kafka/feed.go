//go:build unix

package kafka

import (
	"context"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// The number of concurrent producers. Two producers can publish copies of the same event.
const producers = 3

// publish starts the producers.
func (r *run) publish(ctx context.Context) *proof.Publisher {
	plan := r.plan()
	return proof.Publish(ctx, producers, func(ctx context.Context, p *proof.Publisher) { r.pace(ctx, p, plan) }, r.ProducerOptions(topic)...)
}

// plan lists the events in the order in which they are published.
func (r *run) plan() []int {
	var place func(int, *rand.Rand) (int, bool)
	if r.Order {
		place = func(i int, random *rand.Rand) (int, bool) {
			return r.place(i, r.places[i], random), !r.places[i].isFilled()
		}
	}
	return proof.Plan(r.Seed, r.Events, r.Duplicates, 5000, place)
}

// The CloudEvents attribute source of all events.
const eventSource = "https://api.github.com"

// record returns an event as a CloudEvent in binary mode. Copies of an event go to random partitions, so that two
// members can work on copies of one event at the same time.
func (r *run) record(event int, random *rand.Rand) *kgo.Record {
	hook := r.Webhooks[event%len(r.Webhooks)]
	record := proof.CloudEvent(random.Int32N(int32(r.Partitions)), []byte(hook.Repository), hook.Body, webhooks.ID(event), eventSource, hook.Event)
	if r.Order {
		r.setVersion(record, event)
	}
	return record
}

// pace publishes the plan at a constant rate.
func (r *run) pace(ctx context.Context, p *proof.Publisher, plan []int) {
	random := rand.New(rand.NewPCG(r.Seed, 6))
	p.Evenly(ctx, len(plan), r.Publish, func(i int) {
		producer := random.IntN(producers)
		if r.Keys { // one producer publishes all events of a key, so their order is the producer's order
			producer = r.places[plan[i]].stream % producers
		}
		p.Send(ctx, producer, r.record(plan[i], random))
	})
}
