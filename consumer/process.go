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

// Disposition is the result of Process for a message: whether to ack or nack the message, and why.
type Disposition struct {
	// Kind is Ack or Nack. With Nack, After says how long to wait before the next delivery.
	Kind semel.SettleKind
	// After is how long to wait before the next delivery.
	After time.Duration
	// Ending says, with semel.Ack, how the message ended: source.EndApplied, source.EndDuplicate,
	// source.EndConflict and so on. With semel.Nack, Ending is source.EndUnknown, and the message had no
	// effect: the handler failed, the store is down, or another process is handling a copy of the message
	// (reasonname.Busy).
	Ending source.End
	// Reason is the reason why the message was parked, dead-lettered, discarded or skipped. With semel.Nack, Reason is
	// why the message was not processed. For all other results, Reason is empty.
	Reason semel.Reason
	// Charged reports, with semel.Nack, that the handler ran and failed by its own error, so that this delivery was an
	// attempt. If Charged is false, the message was not attempted. Possible causes: the store is down, another process
	// is processing a copy (reason "copy in flight elsewhere"), a newer release marked the message (reason "written by
	// a newer release"), another transaction holds a lock, or an operator has paused the consumer (semel.ReasonPaused).
	//
	// Message.Attempt should count attempts, but many brokers count deliveries, including deliveries that were returned
	// without an attempt. If the broker can take a message back without counting the delivery, return messages in this
	// way. For example, AMQP 1.0 has the modified outcome without delivery-failed, and some brokers let you extend a
	// lock or visibility timeout. SQS's receive count, NATS's NumDelivered, and nack or reject on RabbitMQ's quorum
	// queues count every delivery. With brokers that count every delivery, count the results with Charged yourself, for
	// example by the message's id, and pass that count plus one as Message.Attempt. Also set the broker's own limit of
	// deliveries so high that an outage does not reach the limit. Kafka does not count deliveries.
	Charged bool
}

// Process makes one attempt for a message and waits for the result. Process is for programs that have their
// own receive loop. Concurrent calls share batches.
//
// After a failure Process returns semel.Nack with the time to wait before the next delivery. When m.Attempt
// has reached Config.Retry.MaxAttempts, the message ends as Config.Retry says. m.Attempt is the broker's
// count of deliveries or, better, of attempts (see Disposition.Charged). If m.Attempt is 0, each delivery
// counts as the first attempt. While the store is down, one call at a time tries to reach the store; the
// other calls return semel.Nack at once.
//
// An error of Process means that the outcome is unknown: do not ack or nack the message. If ctx ended before the result
// was known, engine and handler may still read the message: do not reuse the memory of the message.
func (c *Consumer[Tx]) Process(ctx context.Context, m *semel.Message) (Disposition, error) {
	all, err := c.ProcessAll(ctx, []*semel.Message{m})
	if err != nil {
		return Disposition{}, err
	}
	return all[0], nil
}

// ProcessAll is Process for several messages that arrived together. The messages of one call share batches. After an
// error of ProcessAll, do not ack or nack any of the messages.
func (c *Consumer[Tx]) ProcessAll(ctx context.Context, ms []*semel.Message) ([]Disposition, error) {
	if i := slices.Index(ms, nil); i >= 0 {
		return nil, fmt.Errorf("semel: consumer %q: message %d of %d is nil", c.config.Name, i, len(ms))
	}
	loop, err := c.processSource(ctx)
	if err != nil {
		return nil, err
	}
	if c.control.Paused() {
		return slices.Repeat([]Disposition{{Kind: semel.Nack, After: processAgain, Reason: semel.ReasonPaused}}, len(ms)), nil
	}
	return loop.Process(ctx, ms)
}

// dispositionOf converts a settlement (ack, nack or dead letter) to a Disposition.
func dispositionOf(x *source.Settlement) Disposition {
	return Disposition{Kind: x.Kind, After: x.After, Ending: x.Ending, Reason: x.Reason, Charged: x.Charged}
}

// processAgain is the Disposition.After of messages that Process returns with semel.Nack because the consumer
// is paused.
const processAgain = 30 * time.Second

// processSource returns the message source that Process uses. The first call of processSource starts the engine.
func (c *Consumer[Tx]) processSource(ctx context.Context) (*sources.Calls[Disposition], error) {
	c.mutex.Lock()
	loop := c.loop
	c.mutex.Unlock()
	if loop != nil {
		return loop, nil
	}
	if c.config.mechanism == byKey {
		return nil, fmt.Errorf("semel: consumer %q: Process is not for NewKeyed; for a loop of your own use leasedkey.Keys.Do: %w", c.config.Name, semel.ErrUnsupported)
	}
	if c.config.mechanism != byTransaction {
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

// Close stops the engine that Process started. Running calls of Process end, with semel.ErrClosed if their outcome is
// unknown. Close returns when all handlers have ended. If handlers still run after Config.Drain and 5 s, Close returns
// an error that lists these handlers. If ctx ends first, Close returns the error of ctx. Close is not needed after Run.
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
