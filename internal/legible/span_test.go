package legible

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 48 * time.Hour: "2d", 36 * time.Hour: "36h", 90 * time.Minute: "90m", 90 * time.Second: "1m30s", 5 * time.Millisecond: "5ms",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %q, not %q", d, got, want)
		}
	}
}
