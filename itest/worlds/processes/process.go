//go:build unix

// Package processes runs the built binary as processes that a fault test freezes and kills. The package also asks
// PostgreSQL for the open transactions of the processes.
package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/semel-go/semel"
)

// ErrEnded means that a process has ended by itself.
var ErrEnded = errors.New("semel ended by itself")

// Build builds the binary with the given flags into the folder, and returns the binary's path. The working directory
// may be anywhere in the workspace.
func Build(ctx context.Context, folder string, flags ...string) (string, error) {
	binary := filepath.Join(folder, "semel")
	args := append([]string{"build", "-o", binary}, flags...)
	out, err := exec.CommandContext(ctx, "go", append(args, "github.com/semel-go/semel/cmd/semel")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build semel: %w\n%s", err, out)
	}
	return binary, nil
}

// Command describes a run of `semel run` in a folder, and the files that it writes.
type Command struct {
	Binary, Folder string
	// Policy, Log and Summary are files in the folder. All runs append to the log. Each run overwrites the
	// summary.
	Policy, Log, Summary string
	// Env is added to the environment of the process.
	Env []string
	// Args are the arguments of the binary. Without Args, the binary runs `run` with the policy.
	Args []string
	// JSON are the flags for machine-readable output; nil means the flags of the present release.
	JSON []string
	// Terminal, if set, receives the log of the process instead of Log.
	Terminal *os.File
}

// Process is a running `semel run`. Process calls wait4 with its process id, because only wait4 reports that a child is
// stopped. A Process must not be used concurrently.
type Process struct {
	// PID is the process id.
	PID int
	// Status is the last state change of the process. Ended is true if the process has ended.
	Status syscall.WaitStatus
	Ended  bool
}

// Start starts the process.
func (c Command) Start() (*Process, error) {
	log, err := os.OpenFile(filepath.Join(c.Folder, c.Log), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	summary, err := os.Create(filepath.Join(c.Folder, c.Summary))
	if err != nil {
		return nil, err
	}
	defer summary.Close()
	args := c.Args
	if args == nil {
		args = []string{"run"}
	}
	cmd := c.semel(args...)
	cmd.Stdout, cmd.Stderr = summary, io.Writer(log)
	if c.Terminal != nil {
		cmd.Stderr = c.Terminal
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{PID: cmd.Process.Pid}, nil
}

// semel returns a command of the binary with the policy and JSON output.
func (c Command) semel(args ...string) *exec.Cmd {
	flags := c.JSON
	if flags == nil {
		flags = []string{"-o", "json"}
	}
	cmd := exec.Command(c.Binary, slices.Concat(args, []string{"--config", c.Policy}, flags)...)
	cmd.Dir, cmd.Stderr, cmd.Env = c.Folder, os.Stderr, append(os.Environ(), c.Env...)
	return cmd
}

// Counts returns the counts of a consumer from the summary of the last run. After a killed run, which has written no
// summary, Counts returns an error.
func (c Command) Counts(consumer string) (semel.Counts, error) {
	text, err := os.ReadFile(filepath.Join(c.Folder, c.Summary))
	if err != nil {
		return semel.Counts{}, err
	}
	var summary struct{ Consumers map[string]semel.Counts }
	if err := json.Unmarshal(text, &summary); err != nil {
		return semel.Counts{}, fmt.Errorf("the summary of the last run: %w", err)
	}
	return summary.Consumers[consumer], nil
}

// Left returns the number of messages that were in progress or failed when the last run ended.
func (c Command) Left(consumer string) (int, error) {
	counts, err := c.Counts(consumer)
	return int(counts.InFlight + counts.Failed), err
}

// Parked returns the number of parked messages in the store.
func (c Command) Parked() (int, error) {
	listed, err := c.semel("messages", "ls", "--state", "parked").Output()
	if err != nil {
		return 0, fmt.Errorf("semel messages ls: %w", err)
	}
	var parked struct{ Rows []json.RawMessage }
	if err := json.Unmarshal(listed, &parked); err != nil {
		return 0, fmt.Errorf("semel messages ls: %w", err)
	}
	return len(parked.Rows), nil
}

// Wait waits for the next state change of the process, with the options of wait4.
func (p *Process) Wait(options int) error {
	for !p.Ended {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(p.PID, &status, options, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for semel: %w", err)
		}
		if pid != 0 { // pid 0 means that the state has not changed
			p.Status, p.Ended = status, status.Exited() || status.Signaled()
		}
		return nil
	}
	return nil
}

// Running reports whether the process is still running.
func (p *Process) Running() (bool, error) {
	err := p.Wait(syscall.WNOHANG)
	return !p.Ended, err
}

// Freeze stops the process and returns when it is stopped. The error is ErrEnded if the process
// had ended before.
func (p *Process) Freeze() error {
	if alive, err := p.Running(); err != nil || !alive {
		return errors.Join(err, ErrEnded)
	}
	if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
		return err
	}
	err := p.Wait(syscall.WUNTRACED)
	if err == nil && p.Ended {
		err = ErrEnded
	}
	return err
}

// Thaw continues a frozen process.
func (p *Process) Thaw() error { return syscall.Kill(p.PID, syscall.SIGCONT) }

// Stopped reports whether the process is stopped by a signal.
func (p *Process) Stopped() (bool, error) {
	held := p.Status.Stopped()
	err := p.Wait(syscall.WNOHANG | syscall.WCONTINUED)
	return held && !p.Ended && !p.Status.Continued(), err
}

// Kill ends the process with SIGKILL, even if it is frozen.
func (p *Process) Kill() error {
	if p.Ended {
		return nil
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		return err
	}
	return p.Wait(0)
}

// End sends SIGTERM, so that the process drains and ends. A process that is still starting ends at once.
func (p *Process) End() error {
	if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.Wait(0); err != nil {
		return err
	}
	early := p.Status.Signaled() && p.Status.Signal() == syscall.SIGTERM
	if code := p.Status.ExitStatus(); code != 0 && code != 130 && !early {
		return fmt.Errorf("semel ended with exit code %d instead of draining", code)
	}
	return nil
}

// Pause waits for the duration d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
