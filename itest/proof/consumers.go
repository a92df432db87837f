package proof

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// Consumers is a set of consumers that run in this process.
type Consumers struct {
	// Over receives the errors with which consumers ended.
	Over  chan error
	all   []workload.Consumer
	pools []func()
	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup
}

// NewConsumers returns an empty set for at most `most` consumers.
func NewConsumers(ctx context.Context, most int) *Consumers {
	c := &Consumers{Over: make(chan error, most)}
	c.ctx, c.stop = context.WithCancel(ctx)
	return c
}

// Add starts a consumer.
func (c *Consumers) Add(driver workload.Driver, o workload.Options) error {
	consumer, closePool, err := driver.Open(o)
	if err != nil {
		return err
	}
	c.all, c.pools = append(c.all, consumer), append(c.pools, closePool)
	c.group.Go(func() { c.Over <- consumer.Run(c.ctx) })
	return nil
}

// Ready reports whether all consumers of the set are ready.
func (c *Consumers) Ready() bool {
	return !slices.ContainsFunc(c.all, func(c workload.Consumer) bool { ready, _ := c.Ready(); return !ready })
}

// Counts returns the sum of the counts of all consumers.
func (c *Consumers) Counts() (sum semel.Counts) {
	for _, one := range c.all {
		counts := one.Counts()
		sum.Deliveries += counts.Deliveries
		sum.Duplicates += counts.Duplicates
	}
	return sum
}

// End drains the consumers and returns their errors, except those that a reader of Over has already received.
// End may be called again.
func (c *Consumers) End() (failed error) {
	c.stop()
	c.group.Wait()
	for _, closePool := range c.pools {
		closePool()
	}
	c.pools = nil
	for {
		select {
		case err := <-c.Over:
			failed = errors.Join(failed, err)
		default:
			return failed
		}
	}
}
