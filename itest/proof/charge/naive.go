//go:build unix

package charge

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/worlds/provider"
)

// naive does what many services do. It fetches an order and calls the provider without an idempotency key.
// After an error it retries a few times and then continues with the next order. It commits the offset last.
func (o *order) naive(ctx context.Context) error {
	broker, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...), kgo.ConsumerGroup(naiveGroup), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(2*time.Second),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer broker.CloseAllowingRebalance()
	client := o.client()
	for ctx.Err() == nil {
		records := broker.PollRecords(ctx, 4*workers).Records()
		chargeAll(ctx, client, records)
		if ctx.Err() == nil {
			_ = broker.CommitRecords(ctx, records...)
		}
		broker.AllowRebalance()
	}
	return nil
}

// naiveTries is the number of calls after which the naive consumer gives up an order.
const naiveTries = 3

func chargeAll(ctx context.Context, client provider.Client, records []*kgo.Record) {
	var all sync.WaitGroup
	room := make(chan struct{}, workers)
	for _, r := range records {
		var p provider.Payment
		if json.Unmarshal(r.Value, &p) != nil {
			continue
		}
		p.Reference = naivePrefix + p.Reference
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			for range naiveTries {
				if _, err := client.Charge(ctx, "", p); err == nil {
					return
				}
			}
		})
	}
	all.Wait()
}
