package proof

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Publisher writes to a topic during a fault test and counts the records.
type Publisher struct {
	clients []*kgo.Client
	acked   atomic.Int64
	failed  atomic.Pointer[error]
	hurry   atomic.Bool
	cancel  context.CancelFunc
	done    chan struct{} // closed when every record is acknowledged or has failed to be published
}

// Publish starts concurrent producers. The function pace sends the records and sets the speed. Each record goes to the
// partition that the record names.
func Publish(ctx context.Context, producers int, pace func(context.Context, *Publisher), options ...kgo.Opt) *Publisher {
	p := &Publisher{done: make(chan struct{})}
	for range producers {
		p.clients = append(p.clients, Must(kgo.NewClient(append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)))
	}
	ctx, p.cancel = context.WithCancel(ctx)
	go func() {
		defer close(p.done)
		pace(ctx, p)
		for _, c := range p.clients {
			p.fail(c.Flush(ctx))
		}
	}()
	return p
}

// Send makes one of the producers publish a record.
func (p *Publisher) Send(ctx context.Context, producer int, r *kgo.Record) {
	p.clients[producer].Produce(ctx, r, func(_ *kgo.Record, err error) {
		if err == nil {
			p.acked.Add(1)
		}
		p.fail(err)
	})
}

// Evenly calls send for n records, spread evenly over a time. Until Rest is called, Evenly publishes the last tenth
// slowly, because faults must happen while records arrive.
func (p *Publisher) Evenly(ctx context.Context, n int, within time.Duration, send func(i int)) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	began, sent, trickle := time.Now(), 0, 0.0
	for sent < n && ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
		due := int(float64(n) * min(1, time.Since(began).Seconds()/within.Seconds()))
		if held := n * 9 / 10; due > held && !p.Hurried() {
			if sent >= held { // slower towards the end, so that some records are left until Rest is called
				trickle += float64(n-sent) * (1.0/2000 + 1/float64(n-held))
			}
			due = max(held, sent+int(trickle))
			trickle -= float64(int(trickle))
		}
		for ; sent < min(due, n) && ctx.Err() == nil; sent++ {
			send(sent)
		}
	}
}

func (p *Publisher) fail(err error) {
	if err != nil {
		p.failed.CompareAndSwap(nil, &err)
	}
}

// Acknowledged returns the number of records that the broker has acknowledged.
func (p *Publisher) Acknowledged() int64 { return p.acked.Load() }

// Rest declares that no more faults follow. The remaining records are then published at full speed.
func (p *Publisher) Rest() { p.hurry.Store(true) }

// Hurried reports whether Rest was called. Before Rest is called, some records must be left to publish.
func (p *Publisher) Hurried() bool { return p.hurry.Load() }

// Over reports whether all records are published.
func (p *Publisher) Over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Err returns the first error of a producer.
func (p *Publisher) Err() error {
	if err := p.failed.Load(); err != nil {
		return errors.Join(errors.New("cannot publish a record"), *err)
	}
	return nil
}

// Stop stops publishing, even if records are left.
func (p *Publisher) Stop() {
	p.cancel()
	<-p.done
	for _, c := range p.clients {
		c.Close()
	}
}
