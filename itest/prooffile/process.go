//go:build unix

package prooffile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// process is a running `semel run`. It is waited for by number, because a
// stopped child can only be seen that way.
type process struct {
	pid    int
	ended  bool
	status syscall.WaitStatus
}

// Where a process writes: the log grows over all of them, the summary is of the last.
const (
	logFile     = "semel.log"
	summaryFile = "summary.json"
)

func start(binary, folder string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(folder, logFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	summary, err := os.Create(filepath.Join(folder, summaryFile))
	if err != nil {
		return nil, err
	}
	defer summary.Close()
	cmd := exec.Command(binary, "run", "--config", policyFile, "--json")
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, summary, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{pid: cmd.Process.Pid}, nil
}

// wait waits for the next change of the process, as the options of wait4 say.
func (p *process) wait(options int) error {
	for !p.ended {
		pid, err := syscall.Wait4(p.pid, &p.status, options, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for semel: %w", err)
		}
		p.ended = pid != 0 && (p.status.Exited() || p.status.Signaled())
		return nil
	}
	return nil
}

// running reports whether the process has not ended yet.
func (p *process) running() (bool, error) {
	err := p.wait(syscall.WNOHANG)
	return !p.ended, err
}

// freeze stops the process and returns when it stands still; false if it had
// ended before.
func (p *process) freeze() (bool, error) {
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		return false, err
	}
	err := p.wait(syscall.WUNTRACED)
	return !p.ended, err
}

func (p *process) thaw() error { return syscall.Kill(p.pid, syscall.SIGCONT) }

// kill ends the process with SIGKILL, frozen or not.
func (p *process) kill() error {
	if p.ended {
		return nil
	}
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		return err
	}
	return p.wait(0)
}
