package consumer

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Work is Run for what stands in the store's inbox, without a source: it claims what
// is due of this consumer, only the rows of these numbers if there are any, and ends
// when none is due and none of its claims is open, or when ctx ends. So a program
// that keeps no consumer running works on what was received or retried. While an
// operator has paused the consumer it waits. Left says what is due later. It may be
// called once, and not beside Run.
// semel.ErrUnsupported: the store has no inbox.
func (c *Consumer[Tx]) Work(ctx context.Context, numbers ...int64) error {
	e, err := c.startWork(ctx, noSource{ends: true})
	if err != nil {
		return err
	}
	e.LimitToRows(numbers)
	return e.Run(ctx)
}

// startWork starts a run that has nothing but the inbox.
func (c *Consumer[Tx]) startWork(ctx context.Context, s noSource) (*engine.Engine[Tx], error) {
	if c.inbox() == nil {
		return nil, fmt.Errorf("semel: consumer %q has no Source, and its store no inbox to work on: %w", c.config.Name, semel.ErrUnsupported)
	}
	return c.start(ctx, s)
}

// noSource is the source of a consumer that has only its inbox. It brings nothing.
type noSource struct{ ends bool }

// Info implements source.Source. A claim is parked instead of becoming a dead letter.
func (s noSource) Info() source.Info {
	return source.Info{
		Bounded: s.ends, AtEnd: func() bool { return s.ends },
		Idle:        func(context.Context) (bool, []semel.Unfinished, error) { return true, nil, nil },
		DeadLetters: func(string) error { return nil },
	}
}

// Lanes implements source.Source.
func (noSource) Lanes(o source.LaneObserver) { o.Given(source.Lane{ID: "semel:none", Epoch: 1}) }

// Fetch implements source.Source.
func (s noSource) Fetch(ctx context.Context, _ source.Bound) ([]source.Delivery, error) {
	if s.ends {
		return nil, source.ErrEnd
	}
	<-ctx.Done()
	return nil, nil
}

// Settle implements source.Source.
func (noSource) Settle(context.Context, []source.Settlement) ([]int, error) { return nil, nil }

// Flow implements source.Source.
func (noSource) Flow(source.Lane, bool) {}

// Close implements source.Source.
func (noSource) Close(context.Context) error { return nil }

// inbox is the consumer's inbox, nil where its store keeps none. Also a consumer
// without markers has one: a row that was parked comes there when somebody retries it.
func (c *Consumer[Tx]) inbox() *inbox.Inbox {
	leases, claims := c.store.(store.Leases)
	rows, keeps := c.store.(store.Inbox)
	if !claims || !keeps || c.oneAttempt {
		return nil
	}
	o := inbox.Options{
		Guard: c.config.guard, Leases: leases, Rows: rows, Lease: c.config.Inbox.Lease, Rules: &c.config.rules, Refuse: c.config.setAside,
		Notify: c.reporter.Notify, Control: c.control,
	}
	if lines := linesOf(c.store); lines != nil {
		o.Sweep = &upkeep.LaneSweep{Guard: c.config.guard, Lines: lines, Kept: c.config.OnParked == OnParkedBlock, Within: c.config.Inbox.Lease / 2}
	}
	return inbox.New(o)
}
