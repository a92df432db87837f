package sqlform

import (
	"time"

	"github.com/semel-go/semel/internal/timing"
)

// CutAhead handles a row whose last change is in the future because the store's clock was ahead. CutAhead moves the
// times in the parameter until, so that the row waits from now on for as long as it had to wait after its last change.
// CutAhead returns how far in the future the change is, or 0 if the difference is within the clock slack.
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
