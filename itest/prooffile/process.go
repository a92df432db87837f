//go:build unix

package prooffile

import (
	"encoding/json"
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

// Where the process writes: the log grows over all of them, the summary is of the last.
const (
	logFile     = "semel.log"
	summaryFile = "summary.json"
)

// command is a `semel run` and where it writes, in a folder.
type command struct {
	binary, folder string
	// policy, log and summary are files of the folder.
	policy, log, summary string
	// env is added to the environment.
	env []string
}

func (c command) start() (*process, error) {
	log, err := os.OpenFile(filepath.Join(c.folder, c.log), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	summary, err := os.Create(filepath.Join(c.folder, c.summary))
	if err != nil {
		return nil, err
	}
	defer summary.Close()
	cmd := c.semel("run")
	cmd.Stdout, cmd.Stderr = summary, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{pid: cmd.Process.Pid}, nil
}

// semel is a call of the binary with the policy, for machines to read.
func (c command) semel(args ...string) *exec.Cmd {
	cmd := exec.Command(c.binary, append(args, "--config", c.policy, "--json")...)
	cmd.Dir, cmd.Stderr, cmd.Env = c.folder, os.Stderr, append(os.Environ(), c.env...)
	return cmd
}

// left counts what the last run left in flight or failed.
func (c command) left() (int, error) {
	text, err := os.ReadFile(filepath.Join(c.folder, c.summary))
	if err != nil {
		return 0, err
	}
	var summary struct {
		Consumers map[string]struct {
			InFlight int `json:"in_flight"`
			Failed   int `json:"failed"`
		}
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		return 0, fmt.Errorf("the summary of the last run: %w", err)
	}
	counter := summary.Consumers["counter"]
	return counter.InFlight + counter.Failed, nil
}

// parked counts what is set aside.
func (c command) parked() (int, error) {
	listed, err := c.semel("parked", "ls").Output()
	if err != nil {
		return 0, fmt.Errorf("semel parked ls: %w", err)
	}
	var parked struct{ Rows []json.RawMessage }
	if err := json.Unmarshal(listed, &parked); err != nil {
		return 0, fmt.Errorf("semel parked ls: %w", err)
	}
	return len(parked.Rows), nil
}

// wait waits for the next change of the process, as the options of wait4 say.
func (p *process) wait(options int) error {
	for !p.ended {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(p.pid, &status, options, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for semel: %w", err)
		}
		if pid != 0 { // else nothing has changed
			p.status, p.ended = status, status.Exited() || status.Signaled()
		}
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
