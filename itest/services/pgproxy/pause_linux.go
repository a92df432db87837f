package pgproxy

import (
	"syscall"
	"time"
)

// pause waits as exactly as the kernel can. The timers of the Go runtime round up to a millisecond in an idle
// process.
func pause(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal can end the sleep early
}
