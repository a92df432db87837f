package replay

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/timing"
)

// pace limits the number of messages per second.
type pace struct {
	perSecond int // 0 means no limit
	tokens    float64
	at        time.Time
}

// The method ask waits until further messages are allowed, and returns the number of allowed messages, but
// not more than the parameter most. If ctx ends, ask returns 0.
func (p *pace) ask(ctx context.Context, most int) int {
	if p.perSecond == 0 {
		return most
	}
	for {
		now := time.Now()
		if p.at.IsZero() {
			p.at = now
		}
		p.tokens = min(p.tokens+now.Sub(p.at).Seconds()*float64(p.perSecond), float64(p.perSecond))
		p.at = now
		if p.tokens >= 1 {
			return min(most, int(p.tokens))
		}
		missing := (1 - p.tokens) / float64(p.perSecond)
		if !timing.Wait(ctx, time.Duration(missing*float64(time.Second))+time.Millisecond) {
			return 0
		}
	}
}

// The method take subtracts n from the number of messages that are allowed now.
func (p *pace) take(n int) { p.tokens -= float64(n) }
