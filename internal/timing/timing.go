// Package timing waits for a duration.
package timing

import (
	"context"
	"time"
)

// Wait waits for d and reports whether d passed before ctx ended.
func Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
