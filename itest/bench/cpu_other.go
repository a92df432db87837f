//go:build !unix

package bench

import "time"

// The function busy returns zero on this system, which reports CPU time in a different way.
func busy() time.Duration { return 0 }
