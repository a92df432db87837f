//go:build unix

package charge

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/provider"
)

// naive works like many services: naive fetches an order and calls the provider without an idempotency key. After an
// error, naive retries a few times and then continues with the next order. The offset is committed last.
func (o *order) naive(ctx context.Context) error {
	client := o.client()
	return proof.Poll(ctx, o.Brokers, naiveGroup, topic, 6*time.Second, 4*workers, func(c *kgo.Client, records []*kgo.Record) error {
		chargeAll(ctx, client, records)
		if ctx.Err() == nil {
			_ = c.CommitRecords(ctx, records...)
		}
		return nil
	})
}

// The number of calls after which the naive consumer gives up an order.
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
