//go:build !linux

package pgproxy

import "time"

func pause(d time.Duration) { time.Sleep(d) }
