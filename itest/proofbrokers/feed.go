package proofbrokers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/itest/topics"
	"github.com/semel-go/semel/itest/workload"
	"github.com/twmb/franz-go/pkg/kgo"
)

// feed publishes.
type feed struct {
	client *kgo.Client
	cancel context.CancelFunc
	group  sync.WaitGroup
	hurry  atomic.Bool
	done   atomic.Bool
	acked  atomic.Int64
	sent   int // events; read after done
	mu     sync.Mutex
	failed error // guarded by mu
}

// publish begins to publish; the brokers' deaths must not lose what they
// confirmed, so a record counts when all replicas in sync have it.
func (r *run) publish(ctx context.Context) (*feed, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(r.brokers.Brokers()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MetadataMinAge(500*time.Millisecond), kgo.ProducerLinger(5*time.Millisecond),
		kgo.RequestTimeoutOverhead(3*time.Second), kgo.ProduceRequestTimeout(3*time.Second))
	if err != nil {
		return nil, err
	}
	f := &feed{client: client}
	ctx, f.cancel = context.WithCancel(ctx)
	f.group.Go(func() { f.run(ctx, r.Proof, r.topic) })
	return f, nil
}

// run publishes evenly, every tenth event twice, until there are enough and
// nothing more will happen to the brokers.
func (f *feed) run(ctx context.Context, p Proof, topic string) {
	defer f.done.Store(true)
	const step = 20 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	random := rand.New(rand.NewPCG(p.Seed, 11))
	each := max(1, p.Rate*int(step)/int(time.Second))
	for f.sent < p.Events || !f.hurry.Load() {
		for range each {
			f.send(ctx, topic, f.sent, random)
			if f.sent%10 == 0 {
				f.send(ctx, topic, f.sent, random)
			}
			f.sent++
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	if err := f.client.Flush(ctx); err != nil {
		f.fail(err)
	}
}

func (f *feed) send(ctx context.Context, topic string, n int, random *rand.Rand) {
	f.client.Produce(ctx, topics.Record(topic, random.Int32N(partitions), workload.ID(n), `{}`), func(_ *kgo.Record, err error) {
		if err != nil {
			f.fail(err)
			return
		}
		f.acked.Add(1)
	})
}

func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = fmt.Errorf("publish: %w", err)
	}
}

func (f *feed) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *feed) rest() { f.hurry.Store(true) }

func (f *feed) over() bool { return f.done.Load() }

func (f *feed) acknowledged() int { return int(f.acked.Load()) }

func (f *feed) stop() {
	f.cancel()
	f.group.Wait()
	f.client.Close()
}
