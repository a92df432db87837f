package services

import "syscall"

// childAttributes makes the kernel end the server when this process dies.
func childAttributes(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGQUIT}
}
