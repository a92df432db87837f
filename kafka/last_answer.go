package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// silence is how long no broker may have answered for the source to count as
// one that can be read: longer than a heartbeat takes, which is all that is
// asked while every lane is paused.
const silence = heartbeat + 2*time.Second

// lastTime is when something happened last.
type lastTime struct {
	mu sync.Mutex // guards at
	at time.Time  // zero: never
}

func (l *lastTime) note() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Now()
}

// within reports whether it happened, and not longer ago than d.
func (l *lastTime) within(d time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.at.IsZero() && now.Sub(l.at) <= d
}

// lastAnswer notes when a broker last answered. It is a hook of the clients.
type lastAnswer struct{ lastTime }

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (h *lastAnswer) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e kgo.BrokerE2E) {
	if e.Err() == nil {
		h.note()
	}
}

// cancelled is what Fetch returns at its context's end with nothing taken: the
// client waits for brokers that are away without an error of its own.
func (h *lastAnswer) cancelled(ctx context.Context) error {
	if h.within(silence, time.Now()) {
		return nil
	}
	return ctx.Err()
}
