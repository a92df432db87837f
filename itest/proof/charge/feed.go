//go:build unix

package charge

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
)

// The number of concurrent producers.
const producers = 2

// publish starts the producers.
func (r *run) publish(ctx context.Context) *proof.Publisher {
	plan := r.plan()
	return proof.Publish(ctx, producers, func(ctx context.Context, p *proof.Publisher) { r.pace(ctx, p, plan) }, r.ProducerOptions(topic)...)
}

// plan lists the payments in the order in which they are published.
func (p Proof) plan() []int { return proof.Plan(p.Seed, p.Payments, p.Duplicates, 1000, nil) }

// reference returns the reference of a payment, which is also the id of its order.
func reference(payment int) string { return fmt.Sprintf("order-%06d", payment) }

// record returns an order as a CloudEvent. Copies of an order go to random partitions, so that two processes can work
// on copies of one order at the same time.
func record(payment int, random *rand.Rand) *kgo.Record {
	id := reference(payment)
	body := fmt.Appendf(nil, `{"reference":%q,"card":"card-%d","cents":%d}`, id, payment%500, 100+payment%10_000)
	return proof.CloudEvent(random.Int32N(partitions), []byte(id), body, id, "shop", "order.placed")
}

// pace publishes the plan at a constant rate.
func (r *run) pace(ctx context.Context, p *proof.Publisher, plan []int) {
	random := rand.New(rand.NewPCG(r.Seed, 6))
	p.Evenly(ctx, len(plan), r.Publish, func(i int) { p.Send(ctx, random.IntN(producers), record(plan[i], random)) })
}
