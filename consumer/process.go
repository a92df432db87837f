package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/sources"
	"github.com/semel-go/semel/source"
)

// Disposition says how to settle a message that was given to Process.
type Disposition struct {
	// Kind is Ack, or semel.Nack with After.
	Kind semel.SettleKind
	// After is how long to wait before the next delivery.
	After time.Duration
	// Ending says, with semel.Ack, how the message ended: source.EndApplied,
	// source.EndDuplicate, source.EndConflict and so on. With semel.Nack it is
	// source.EndUnknown, and the message had no effect: the handler failed, the store
	// is down, or, with reasonname.Busy, a copy is in flight elsewhere.
	Ending source.End
	// Reason is why the message was parked, dead-lettered, discarded or skipped or, with semel.Nack, why it was
	// not processed; empty if there is no such reason.
	Reason semel.Reason
	// Charged reports, with semel.Nack, that the handler ran and failed by its own error, so that this delivery
	// was an attempt. Other messages with semel.Nack were not attempted: the store is down, another process is
	// processing a copy (reason "copy in flight elsewhere"), a newer release marked the message (reason "written
	// by a newer release"), another transaction holds a lock, or an operator has paused the consumer
	// (semel.ReasonPaused).
	//
	// Message.Attempt should count attempts, but many brokers count deliveries, including those that were returned
	// without a charge. If the broker can return a message without counting it, do that: AMQP 1.0 has the modified
	// outcome without delivery-failed, and some brokers let you extend a lock or visibility timeout. With SQS's
	// receive count, NATS's NumDelivered, and nack or reject on RabbitMQ's quorum queues this is not possible.
	// Then count the charged results yourself, for example by the message's id, pass that count plus one as
	// Message.Attempt, and set the broker's own limit of deliveries so high that an outage does not reach it.
	// Kafka does not count deliveries.
	Charged bool
}

// Process makes one attempt for a message and waits for its result. Process is for programs that have
// their own receive loop. Concurrent calls share batches.
//
// After a failure the message is handed back (semel.Nack) with the time to wait before the next delivery.
// When m.Attempt has reached Config.Retry.MaxAttempts, the message ends as Config.Retry says. m.Attempt is
// the broker's count of deliveries, or better of attempts (see Disposition.Charged); if it is 0, each
// delivery counts as the first. While the store is down, one call at a time asks whether it is back; the
// other messages are handed back at once.
//
// An error says that the outcome is unknown: do not settle the message. If ctx ended first, engine and
// handler may still read the message: do not reuse its memory.
func (c *Consumer[Tx]) Process(ctx context.Context, m *semel.Message) (Disposition, error) {
	all, err := c.ProcessAll(ctx, []*semel.Message{m})
	if err != nil {
		return Disposition{}, err
	}
	return all[0], nil
}

// ProcessAll is Process for several messages that arrived together; they share batches. After an error
// none of them may be settled.
func (c *Consumer[Tx]) ProcessAll(ctx context.Context, ms []*semel.Message) ([]Disposition, error) {
	if i := slices.Index(ms, nil); i >= 0 {
		return nil, fmt.Errorf("semel: consumer %q: message %d of %d is nil", c.config.Name, i, len(ms))
	}
	loop, err := c.looping(ctx)
	if err != nil {
		return nil, err
	}
	if c.control.Paused() {
		return slices.Repeat([]Disposition{{Kind: semel.Nack, After: processAgain, Reason: semel.ReasonPaused}}, len(ms)), nil
	}
	return loop.Process(ctx, ms)
}

// dispositionOf returns a settlement as the Disposition for the caller of Process.
func dispositionOf(x *source.Settlement) Disposition {
	return Disposition{Kind: x.Kind, After: x.After, Ending: x.Ending, Reason: x.Reason, Charged: x.Charged}
}

// processAgain is Disposition.After of a message that Process hands back because the consumer is
// paused.
const processAgain = 30 * time.Second

// looping returns the source of Process. The first call starts its engine.
func (c *Consumer[Tx]) looping(ctx context.Context) (*sources.Calls[Disposition], error) {
	c.mutex.Lock()
	loop := c.loop
	c.mutex.Unlock()
	if loop != nil {
		return loop, nil
	}
	if c.config.way == byKey {
		return nil, fmt.Errorf("semel: consumer %q: Process is not for NewKeyed; for a loop of your own use leasedkey.Keys.Do: %w", c.config.Name, semel.ErrUnsupported)
	}
	if c.config.way != byTransaction {
		return nil, fmt.Errorf("semel: consumer %q: Process runs a handler when a message comes, and one that calls out runs when its message is claimed; use Accept of a consumer that New made on the same store, and Work or Run here: %w", c.config.Name, semel.ErrUnsupported)
	}
	if c.config.steps != nil {
		return nil, fmt.Errorf("semel: consumer %q: Process runs a handler when a message comes, and steps run when it is claimed; use Accept, and Work or Run: %w", c.config.Name, semel.ErrUnsupported)
	}
	loop = sources.NewCalls(dispositionOf)
	info, err := c.check(ctx, loop)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.loop != nil { // another call was first
		return c.loop, nil
	}
	c.oneAttempt = true
	e, err := c.take(loop, info)
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	c.loop, c.stop = loop, stop
	c.group.Go(func() {
		c.ended = e.Run(run)
		loop.End(c.ended)
	})
	return loop, nil
}

// Close stops the engine that Process started. Calls under way end, with semel.ErrClosed if their outcome
// is unknown. Close returns when everything has ended; or after Config.Drain and 5 s, with an error that
// says what still runs; or when ctx ends, with its error. After Run it is not needed.
func (c *Consumer[Tx]) Close(ctx context.Context) error {
	c.mutex.Lock()
	c.started = true
	stop, loop := c.stop, c.loop
	c.mutex.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	select {
	case <-loop.Over:
		c.group.Wait()
		return c.ended
	case <-ctx.Done():
		return ctx.Err()
	}
}
