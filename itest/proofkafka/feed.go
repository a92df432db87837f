//go:build linux

package proofkafka

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/webhooks"
)

// producers publish side by side, so that copies of one event can come from
// two of them.
const producers = 3

// feed publishes a plan.
type feed struct {
	clients []*kgo.Client
	acked   atomic.Int64
	failed  atomic.Pointer[error]
	hurry   atomic.Bool // nothing more will happen: publish the rest
	total   int
	cancel  context.CancelFunc
	done    chan struct{} // closed when every record is acknowledged or has failed
}

// publish begins to publish.
func (r *run) publish(ctx context.Context) (*feed, error) {
	f := &feed{done: make(chan struct{})}
	for range producers {
		c, err := kgo.NewClient(kgo.SeedBrokers(r.kafka.Brokers()...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerLinger(5*time.Millisecond))
		if err != nil {
			f.close()
			return nil, err
		}
		f.clients = append(f.clients, c)
	}
	plan := r.plan()
	f.total = len(plan)
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		f.run(ctx, plan, r.Publish, rand.New(rand.NewPCG(r.Seed, 6)), r.record)
	}()
	return f, nil
}

// plan lists the events in the order in which they are published: each once,
// and copies some way behind.
func (r *run) plan() []int {
	random := rand.New(rand.NewPCG(r.Seed, 7))
	type place struct{ event, at int }
	var all []place
	for i := range r.Events {
		all = append(all, place{i, 2 * i})
	}
	for range r.Duplicates {
		i := random.IntN(r.Events)
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
	return &kgo.Record{
		Partition: random.Int32N(int32(r.Partitions)), Key: []byte(hook.Repository), Value: hook.Body,
		Headers: []kgo.RecordHeader{
			header("ce_specversion", "1.0"), header("ce_id", webhooks.ID(event)), header("ce_source", eventSource),
			header("ce_type", hook.Event), header("content-type", "application/json"),
		},
	}
}

// run publishes evenly. The last tenth waits until nothing more will happen,
// but for a trickle: what happens must happen under load.
func (f *feed) run(ctx context.Context, plan []int, during time.Duration, random *rand.Rand, record func(int, *rand.Rand) *kgo.Record) {
	const tick = 50 * time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var under sync.WaitGroup
	began, sent := time.Now(), 0
	for sent < len(plan) && ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
		due := int(float64(len(plan)) * min(1, time.Since(began).Seconds()/during.Seconds()))
		if held := len(plan) * 9 / 10; due > held && !f.hurry.Load() {
			due = max(held, sent+(len(plan)-sent)/2000+1)
		}
		for ; sent < min(due, len(plan)) && ctx.Err() == nil; sent++ {
			under.Add(1)
			f.clients[random.IntN(len(f.clients))].Produce(ctx, record(plan[sent], random), func(_ *kgo.Record, err error) {
				defer under.Done()
				if err == nil {
					f.acked.Add(1)
				} else {
					f.failed.CompareAndSwap(nil, &err)
				}
			})
		}
	}
	under.Wait()
}

func (f *feed) acknowledged() int64 { return f.acked.Load() }

// rest lets the feed publish what is left.
func (f *feed) rest() { f.hurry.Store(true) }

func (f *feed) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

func (f *feed) err() error {
	if err := f.failed.Load(); err != nil {
		return errors.Join(errors.New("a record could not be published"), *err)
	}
	return nil
}

func (f *feed) stop() {
	f.cancel()
	<-f.done
	f.close()
}

func (f *feed) close() {
	for _, c := range f.clients {
		c.Close()
	}
}
