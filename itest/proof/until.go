package proof

import (
	"context"
	"time"
)

// Until calls the condition once in every interval until it returns true or an error.
func Until(ctx context.Context, every time.Duration, so func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if is, err := so(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
