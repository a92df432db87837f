package consumer

import "context"

// beside lets those use the store one at a time who work beside the batches: a pool of
// connections is sized by the workers, and needs one for all of them.
type beside chan struct{}

func newBeside() beside { return make(beside, 1) }

// do calls f when nobody else is there; ctx ends the wait.
func (b beside) do(ctx context.Context, f func() error) error {
	select {
	case b <- struct{}{}:
		defer func() { <-b }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}
