package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// bell tells other processes of the consumer that something in its inbox is due, and
// the machine when others say so: each would else find out with its next poll. It
// rings when a receipt is committed and never with it, and only so often, however much
// is received: who hears it claims all that is due.
type bell struct {
	config *settings
	store  store.Notifier
	// rung: others are to be told; heard: others have told.
	rung, heard chan struct{}

	mutex sync.Mutex
	wait  time.Duration // until it listens again; 0: it hears; guarded by mutex
}

const (
	// ringsEvery is the least time between two notifications of a process.
	ringsEvery = 100 * time.Millisecond
	// listensAgain is the first wait after what was heard is heard no more; it
	// doubles, up to listensLate.
	listensAgain = time.Second
	listensLate  = time.Minute
)

func newBell(c *settings, st store.Notifier) *bell {
	return &bell{config: c, store: st, rung: make(chan struct{}, 1), heard: make(chan struct{}, 1)}
}

// settled rings for what was received.
func (b *bell) settled(s *machine.Settle) {
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

func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// send notifies others until base ends. What cannot be sent they find by asking.
func (b *bell) send(base context.Context) {
	var told time.Time
	for {
		select {
		case <-b.rung:
		case <-base.Done():
			return
		}
		ctx, cancel := context.WithTimeout(base, b.config.Inbox.Poll)
		err := b.store.Notify(ctx, b.config.Name)
		cancel()
		if err != nil && base.Err() == nil && time.Since(told) > listensLate {
			told = time.Now()
			b.config.Logger.Warn("other processes are not told of what is due; they find it when they ask", "consumer", b.config.Name, "error", err)
		}
		if !timing.Wait(base, ringsEvery) {
			return
		}
	}
}

// listen hears what others say until base ends.
func (b *bell) listen(base context.Context) {
	for base.Err() == nil {
		err := b.store.Listen(base, b.config.Name, b.hear)
		if err == nil || errors.Is(err, semel.ErrUnsupported) {
			return
		}
		if !timing.Wait(base, b.deafened(err)) {
			return
		}
	}
}

// hear takes that something may be due.
func (b *bell) hear() {
	b.mutex.Lock()
	again := b.wait > 0
	b.wait = 0
	b.mutex.Unlock()
	if again {
		b.config.Logger.Info("notifications are heard again", "consumer", b.config.Name)
	}
	select {
	case b.heard <- struct{}{}:
	default:
	}
}

// deafened takes that nothing is heard any more, and says for how long.
func (b *bell) deafened(err error) time.Duration {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.wait == 0 {
		b.config.Logger.Warn("notifications are not heard; the inbox is asked instead", "consumer", b.config.Name, "every", b.config.Inbox.Poll.String(), "error", err)
	}
	b.wait = max(listensAgain, min(2*b.wait, listensLate))
	return b.wait
}
