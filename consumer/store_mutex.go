package consumer

import "context"

// beside lets everything that works beside the batches use the store one at a time. So a pool needs
// one connection for all of it, and one for each worker.
type beside chan struct{}

func newBeside() beside { return make(beside, 1) }

// do waits for its turn, until ctx ends, and calls f.
func (b beside) do(ctx context.Context, f func() error) error {
	select {
	case b <- struct{}{}:
		defer func() { <-b }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}
