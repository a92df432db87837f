//go:build unix

package proof

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// Member is one process of a fleet, over all its restarts.
type Member struct {
	processes.Command
	*processes.Process
	// Name is the name by which servers know the process.
	Name string
	// Counted makes the proof count its deliveries, on Linux.
	Counted   bool
	terminal  *terminal // where the present run shows them
	delivered int64     // in the runs that are over
}

// Start starts the process, whose policy exists.
func (m *Member) Start() {
	if m.Counted {
		m.terminal = Must(openTerminal(m.Path(m.Log)))
		defer m.terminal.given()
		m.Command.Terminal = m.terminal.end
	}
	m.Process = Must(m.Command.Start())
}

// Own makes the process a run of the present program, which starts again with these arguments.
func (m *Member) Own(args ...string) { m.Binary, m.Args = Must(os.Executable()), args }

// Kill ends the process with SIGKILL.
func (m *Member) Kill() {
	Check(m.Process.Kill())
	m.over()
}

// Finish waits until the process has ended by itself with exit code 0, and returns how many
// messages of a consumer it left.
func (m *Member) Finish(consumer string) (left int) {
	Check(m.Wait(0))
	if m.Status.ExitStatus() != 0 {
		Check(m.Failure())
	}
	return Must(m.Left(consumer))
}

// End lets the process drain and end.
func (m *Member) End() error {
	err := m.Process.End()
	m.over()
	return err
}

// over adds the deliveries of a run that has ended: from its summary or, if it was killed, the
// last number on its terminal.
func (m *Member) over() {
	if m.terminal == nil {
		return
	}
	m.terminal.wait()
	shown := m.terminal.deliveries()
	if counts, err := m.Counts(Consumer); err == nil {
		shown = max(shown, counts.Deliveries)
	}
	m.delivered += shown
	m.terminal = nil
}

// Await waits until the condition holds, for at most that long. The process must not end meanwhile.
func (m *Member) Await(ctx context.Context, most time.Duration, so func() bool) {
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	During(m.Name+", "+m.Policy, func() {
		Until(within, 5*time.Millisecond, func() bool {
			if !Must(m.Running()) {
				Check(m.Failure())
			}
			return so()
		})
	})
}

// Shown returns the deliveries that the current run has displayed.
func (m *Member) Shown() int64 {
	if m.terminal == nil {
		return 0
	}
	return m.terminal.deliveries()
}

// Delivered returns the deliveries of all runs.
func (m *Member) Delivered() int64 { return m.delivered + m.Shown() }

// Path returns the path of a file in its folder.
func (m *Member) Path(file string) string { return filepath.Join(m.Folder, file) }

// Failure returns the error for a process that ended by itself.
func (m *Member) Failure() error {
	return fmt.Errorf("%s: %w: %v; its last log line is %q", m.Name, processes.ErrEnded, m.Status, m.LastWords())
}

// LastWords returns the last line of the log.
func (m *Member) LastWords() string {
	text, _ := os.ReadFile(m.Path(m.Log))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
