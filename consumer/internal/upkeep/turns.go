package upkeep

import (
	"context"
)

// Turns is a lock for all uses of the store by a consumer except its batches. So a connection pool needs one
// connection for each worker, and one connection for all other work.
type Turns chan struct{}

// NewTurns returns an unlocked Turns.
func NewTurns() Turns { return make(Turns, 1) }

// Do waits for the lock, or until ctx ends, and calls f with the lock held.
func (t Turns) Do(ctx context.Context, f func() error) error {
	select {
	case t <- struct{}{}:
		defer func() { <-t }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}
