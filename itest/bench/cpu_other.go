//go:build !unix

package bench

import "time"

// busy is zero where the system does not tell in the same words.
func busy() time.Duration { return 0 }
