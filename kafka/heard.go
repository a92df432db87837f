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

// heard notes when a broker last answered. It is a hook of the clients.
type heard struct {
	mu sync.Mutex // guards at
	at time.Time
}

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (h *heard) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e kgo.BrokerE2E) {
	if e.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = time.Now()
}

// cancelled is what Fetch returns at its context's end with nothing taken: the
// client waits for brokers that are away without an error of its own.
func (h *heard) cancelled(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && time.Since(h.at) <= silence {
		return nil
	}
	return ctx.Err()
}
