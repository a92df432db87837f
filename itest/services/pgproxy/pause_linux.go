package pgproxy

import (
	"syscall"
	"time"
)

// pause waits as exactly as the kernel can. The runtime's own timers round up
// to a millisecond where nothing else is to be done.
func pause(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // sooner, if a signal comes
}
