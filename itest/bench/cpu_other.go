//go:build !unix

package bench

import "time"

// cpuTime returns zero on this system, which reports CPU time in a different way.
func cpuTime() time.Duration { return 0 }
