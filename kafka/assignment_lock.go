package kafka

import (
	"context"
	"sync"
)

// gate lets polls and assignments take turns. A poll takes records out of the
// client, and only then are they given to a lane; a partition that was lost and
// assigned anew in between would get records from the place where its former
// epoch stood. So an assignment ends the poll under way, waits until its
// records are given to lanes, and keeps the next poll out until the new lanes
// are there.
type gate struct {
	mu        sync.Mutex         // guards the rest
	interrupt context.CancelFunc // of the poll under way
	ended     chan struct{}      // of the poll under way; nil without one
	roused    bool               // the next poll returns at once
	holders   int
	free      chan struct{} // closed when no one holds
}

// enter begins a poll. Without a context to poll in, the caller looks for work
// again.
func (g *gate) enter(ctx context.Context) (context.Context, context.CancelFunc) {
	g.mu.Lock()
	for g.holders > 0 {
		free := g.free
		g.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, nil
		}
		g.mu.Lock()
	}
	defer g.mu.Unlock()
	if g.roused {
		g.roused = false
		return nil, nil
	}
	inner, cancel := context.WithCancel(ctx)
	g.interrupt, g.ended = cancel, make(chan struct{})
	return inner, cancel
}

// leave ends a poll: its records are given to lanes.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupt()
	close(g.ended)
	g.interrupt, g.ended, g.roused = nil, nil, false
}

// rouse ends the poll under way, or lets the next one return at once.
func (g *gate) rouse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.roused = true
	if g.interrupt != nil {
		g.interrupt()
	}
}

// hold keeps polls out until release, and returns when none is under way.
func (g *gate) hold() {
	g.mu.Lock()
	if g.holders++; g.holders == 1 {
		g.free = make(chan struct{})
	}
	ended := g.ended
	if g.interrupt != nil {
		g.interrupt()
	}
	g.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holders--; g.holders == 0 {
		close(g.free)
	}
}
