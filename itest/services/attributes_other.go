//go:build !linux

package services

import "syscall"

// childAttributes sets only the owner, because this system cannot end the server when this process dies.
func childAttributes(owner *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner}
}
