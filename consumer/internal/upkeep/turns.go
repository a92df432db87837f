package upkeep

import (
	"context"
)

// Turns let everything that works beside the batches use the store one at a time. So a pool needs
// one connection for all of it, and one for each worker.
type Turns chan struct{}

// NewTurns returns turns that nobody has.
func NewTurns() Turns { return make(Turns, 1) }

// Do waits for its turn, until ctx ends, and calls f.
func (t Turns) Do(ctx context.Context, f func() error) error {
	select {
	case t <- struct{}{}:
		defer func() { <-t }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}
