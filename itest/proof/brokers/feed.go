package brokers

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/topics"
	"github.com/semel-go/semel/itest/workload"
	"github.com/twmb/franz-go/pkg/kgo"
)

// publish begins to publish; the brokers' deaths must not lose what they
// confirmed, so a record counts when all replicas in sync have it.
func (r *run) publish(ctx context.Context) (*proof.Publisher, error) {
	return proof.Publish(ctx, 1, r.pace, kgo.SeedBrokers(r.brokers.Brokers()...),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MetadataMinAge(500*time.Millisecond), kgo.ProducerLinger(5*time.Millisecond),
		kgo.RequestTimeoutOverhead(3*time.Second), kgo.ProduceRequestTimeout(3*time.Second))
}

// pace publishes evenly, every tenth event twice, until there are enough and
// nothing more will happen to the brokers.
func (r *run) pace(ctx context.Context, p *proof.Publisher) {
	const step = 20 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	random := rand.New(rand.NewPCG(r.Seed, 11))
	each := max(1, r.Rate*int(step)/int(time.Second))
	send := func(n int) { p.Send(ctx, 0, topics.Record(r.topic, random.Int32N(partitions), workload.ID(n), `{}`)) }
	for r.sent < r.Events || !p.Hurried() {
		for range each {
			send(r.sent)
			if r.sent%10 == 0 {
				send(r.sent)
			}
			r.sent++
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
