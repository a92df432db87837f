package legible

import (
	"fmt"
	"time"
)

// Span is a span as people write it, in the largest unit of which it is a whole number: 7d,
// 36h, 5m; shorter ones as time.Duration has them.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
