package services

import "syscall"

// childAttributes makes the kernel send the signal of the parameter last to the server when this process dies.
func childAttributes(owner *syscall.Credential, last syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Pdeathsig: last}
}
