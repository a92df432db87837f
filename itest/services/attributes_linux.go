package services

import "syscall"

// childAttributes makes the kernel send the server a signal when this process
// dies.
func childAttributes(owner *syscall.Credential, last syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Pdeathsig: last}
}
