// Package notify exchanges notifications about due rows between the processes of a consumer.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/source"
)

// Bell notifies the other processes of a consumer that rows of its inbox are due, and receives the notifications of
// other processes. Without a Bell, the other processes find the rows with their next poll. A Bell sends a notification
// after the commit of a receipt, at most once per ringInterval. A process that receives a notification claims all due
// rows, so one notification is enough for many rows. The methods of a nil Bell do nothing.
type Bell struct {
	consumer string
	logger   *slog.Logger
	poll     time.Duration
	store    admin.Notifier
	// The channel rung receives a value when a notification must be sent. The channel heard receives a value when a
	// notification has arrived.
	rung, heard chan struct{}

	mutex sync.Mutex
	wait  time.Duration // wait before listening again; 0 while listening; guarded by mutex
}

const (
	// ringInterval is the minimum time between two notifications of a process.
	ringInterval = 100 * time.Millisecond
	// listensAgain is the first delay before listening is tried again after a failure. The delay doubles with each
	// failure, up to listensLate.
	listensAgain = time.Second
	listensLate  = time.Minute
)

// New returns a Bell of the consumer with the given name. The parameter poll is the interval at which the inbox is
// polled without notifications.
func New(consumer string, logger *slog.Logger, poll time.Duration, st admin.Notifier) *Bell {
	return &Bell{consumer: consumer, logger: logger, poll: poll, store: st, rung: make(chan struct{}, 1), heard: make(chan struct{}, 1)}
}

// Heard returns a channel that receives a value after notifications of other processes. For a nil Bell, Heard returns
// nil.
func (b *Bell) Heard() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.heard
}

// Settled notifies other processes if a message of s was received into the inbox.
func (b *Bell) Settled(s *machine.Settle) {
	if b == nil {
		return
	}
	for i := range s.Items {
		if s.Items[i].Ending == source.EndReceived {
			b.ring()
			return
		}
	}
}

// ring makes Send send a notification.
func (b *Bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// Send sends notifications until base ends. If a notification cannot be sent, the other processes find the
// rows with their next poll.
func (b *Bell) Send(base context.Context) {
	var logged time.Time // time of the last logged failure
	for {
		select {
		case <-b.rung:
		case <-base.Done():
			return
		}
		ctx, cancel := context.WithTimeout(base, b.poll)
		err := b.store.Notify(ctx, b.consumer)
		cancel()
		if err != nil && base.Err() == nil && time.Since(logged) > listensLate {
			logged = time.Now()
			b.logger.Warn("other processes are not told of what is due; they find it when they ask", "consumer", b.consumer, "error", err)
		}
		if !timing.Wait(base, ringInterval) {
			return
		}
	}
}

// Listen receives notifications of other processes until base ends.
func (b *Bell) Listen(base context.Context) {
	for base.Err() == nil {
		err := b.store.Listen(base, b.consumer, b.receive)
		if err == nil || errors.Is(err, semel.ErrUnsupported) {
			return
		}
		if !timing.Wait(base, b.recordFailure(err)) {
			return
		}
	}
}

// receive records that a notification has arrived.
func (b *Bell) receive() {
	b.mutex.Lock()
	again := b.wait > 0
	b.wait = 0
	b.mutex.Unlock()
	if again {
		b.logger.Info("notifications are heard again", "consumer", b.consumer)
	}
	select {
	case b.heard <- struct{}{}:
	default:
	}
}

// recordFailure records that listening has failed, and returns how long to wait before listening again.
func (b *Bell) recordFailure(err error) time.Duration {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.wait == 0 {
		b.logger.Warn("notifications are not heard; the inbox is asked instead", "consumer", b.consumer, "every", b.poll.String(), "error", err)
	}
	b.wait = max(listensAgain, min(2*b.wait, listensLate))
	return b.wait
}
