//go:build !unix

package bench

import "time"

// busy returns zero, because this system reports CPU time in another way.
func busy() time.Duration { return 0 }
