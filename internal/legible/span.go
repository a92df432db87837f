package legible

import (
	"fmt"
	"time"
)

// Span formats a duration in the largest unit that gives a whole number, such as 7d, 36h or 5m. If a duration
// has a fraction of a minute, Span formats it as time.Duration does.
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
