package sqlsuite

import (
	"testing"
	"time"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// Today returns the start of the current day in UTC, for tests of daily partitions. During the last minute of a day,
// Today first waits for the next day. The clock of a server cannot be set, and a test that runs across midnight would
// find partitions that it does not expect.
func Today(t testing.TB) time.Time {
	t.Helper()
	const day = 24 * time.Hour
	now := time.Now().UTC()
	if left := now.Truncate(day).Add(day).Sub(now); left < time.Minute {
		t.Logf("waiting %v for the next day", left)
		processes.Pause(t.Context(), left)
	}
	return time.Now().UTC().Truncate(day)
}
