package pgproxy

import (
	"syscall"
	"time"
)

// pause waits as exactly as the kernel can. On an idle process, the timers of the Go runtime
// round up to a millisecond.
func pause(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // returns earlier if a signal arrives
}
