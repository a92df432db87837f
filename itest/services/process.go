package services

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
)

// process is one run of a server. A process consists of a child of the test's process, which is PostgreSQL's postmaster
// or Kafka's Java, and of the children of that child.
type process struct {
	cmd  *osexec.Cmd
	over chan struct{} // closed after the child has ended and Wait has returned
}

func (p programs) start(s *Server) *process {
	s.t.Helper()
	line := append(slices.Clone(s.within), filepath.Join(p.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
	c := osexec.Command(line[0], line[1:]...)
	c.Dir = p.root
	c.Env = append(os.Environ(), s.environment...)
	owner := p.owner
	if s.within != nil {
		owner = nil // the command in s.within changes the owner itself
	}
	c.SysProcAttr = childAttributes(owner, syscall.SIGQUIT)
	return startLogged(s.t, c, s.folder)
}

// startLogged starts a server whose output goes to a file in the server's folder.
func startLogged(t testing.TB, c *osexec.Cmd, folder string) *process {
	t.Helper()
	log := must.Get(os.OpenFile(filepath.Join(folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))(t)
	defer func() { _ = log.Close() }()
	c.Stdout, c.Stderr = log, log
	must.OK(t, c.Start())
	run := &process{cmd: c, over: make(chan struct{})}
	go func() {
		_ = c.Wait()
		close(run.over)
	}()
	return run
}

func (p *process) hasEnded() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

func (p *process) wait(most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.over:
		return true
	case <-timer.C:
		return false
	}
}

// signal sends a signal to the child. os.Process rejects the signal if the child has ended, so no other
// process can get it.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill stops the child before it lists the child's children, so that the child cannot start further children. If a
// child stayed alive, it could wait forever for a resource of a killed process and prevent a restart of the server.
func (p *process) kill() {
	p.signal(syscall.SIGSTOP)
	children, _ := p.childPIDs()
	p.signal(syscall.SIGKILL)
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.over
}

// signalAll signals the child and then its children. A child that is stopped or killed cannot start further
// children.
func (p *process) signalAll(s syscall.Signal) error {
	if p.hasEnded() {
		return fmt.Errorf("the server's process %d has ended", p.cmd.Process.Pid)
	}
	p.signal(s)
	children, err := p.childPIDs()
	for _, pid := range children {
		_ = syscall.Kill(pid, s)
	}
	return err
}

// childPIDs returns the process ids of the child's children.
func (p *process) childPIDs() ([]int, error) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	if len(stats) == 0 {
		return nil, fmt.Errorf("no /proc on this system: cannot find the server's processes")
	}
	var pids []int
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		// The name of the process may contain any characters, so the fields are read after its last parenthesis. State
		// and parent follow the parenthesis.
		after := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if parent, _ := strconv.Atoi(after[1]); parent == p.cmd.Process.Pid {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
