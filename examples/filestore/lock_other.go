//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package filestore

import "os"

// lock does nothing on this system: the operator must ensure that only one process opens the file.
func lock(*os.File) error { return nil }
