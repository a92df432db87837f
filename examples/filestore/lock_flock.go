//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filestore

import (
	"os"
	"syscall"
)

// The function lock locks the file, so that no other process can open it until it is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
