package upkeep

import (
	"context"
)

// Turns is a lock for all uses of the store by a consumer except its batches. Because of Turns, a connection pool needs
// only one connection for each worker, and one connection for all other work.
type Turns chan struct{}

// NewTurns returns an unlocked Turns.
func NewTurns() Turns { return make(Turns, 1) }

// Do waits for the lock, calls the function f, and unlocks. If ctx ends before Do has the lock, Do returns the error of
// ctx.
func (t Turns) Do(ctx context.Context, f func() error) error {
	select {
	case t <- struct{}{}:
		defer func() { <-t }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}
