package proof

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// Consumers run in this process.
type Consumers struct {
	// Over is given what a consumer ended with.
	Over  chan error
	all   []workload.Consumer
	pools []func()
	ctx   context.Context
	stop  context.CancelFunc
	group sync.WaitGroup
}

// NewConsumers returns none; it has room for so many.
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

// Ready reports whether all are.
func (c *Consumers) Ready() bool {
	return !slices.ContainsFunc(c.all, func(c workload.Consumer) bool { ready, _ := c.Ready(); return !ready })
}

// Counts adds up what they did.
func (c *Consumers) Counts() (sum semel.Counts) {
	for _, one := range c.all {
		counts := one.Counts()
		sum.Deliveries += counts.Deliveries
		sum.Duplicates += counts.Duplicates
	}
	return sum
}

// End has them drain and returns what those ended with that nobody has heard of.
// It may be called again.
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
