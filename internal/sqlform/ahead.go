package sqlform

import (
	"time"

	"github.com/semel-go/semel/internal/timing"
)

// CutAhead has a row that was changed in the future, since the store's clock was ahead then, wait
// from now for as long as it was to wait from then: it cuts the moments until which the row waits,
// and returns how far in the future the change was.
func CutAhead(changed, now time.Time, until ...*time.Time) time.Duration {
	by := changed.Sub(now)
	if by <= timing.ClockSlack {
		return 0
	}
	for _, at := range until {
		if !at.IsZero() {
			*at = now.Add(max(at.Sub(changed), 0))
		}
	}
	return by
}
