package replay

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/timing"
)

// pace limits the number of messages per second.
type pace struct {
	perSecond  int // 0 means no limit
	tokens     float64
	refilledAt time.Time
}

// waitForTokens waits until further messages are allowed, and returns the number of allowed messages, but not more than
// the parameter most. If ctx ends, waitForTokens returns 0.
func (p *pace) waitForTokens(ctx context.Context, most int) int {
	if p.perSecond == 0 {
		return most
	}
	for {
		now := time.Now()
		if p.refilledAt.IsZero() {
			p.refilledAt = now
		}
		p.tokens = min(p.tokens+now.Sub(p.refilledAt).Seconds()*float64(p.perSecond), float64(p.perSecond))
		p.refilledAt = now
		if p.tokens >= 1 {
			return min(most, int(p.tokens))
		}
		missing := (1 - p.tokens) / float64(p.perSecond)
		if !timing.Wait(ctx, time.Duration(missing*float64(time.Second))+time.Millisecond) {
			return 0
		}
	}
}

// spend subtracts n from the number of messages that are allowed now.
func (p *pace) spend(n int) { p.tokens -= float64(n) }
