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

// Member is one process of a fleet, including all its restarts.
type Member struct {
	processes.Command
	*processes.Process
	// Name identifies the process to the servers.
	Name string
	// Counted makes the fault test count the member's deliveries. Counting works on Linux only.
	Counted   bool
	terminal  *terminal // terminal on which the current process displays its deliveries
	delivered int64     // deliveries of the earlier processes of this member
	restarted time.Time // when the fleet last restarted the member
}

// Start starts the process. The policy of the member must exist.
func (m *Member) Start() {
	if m.Counted {
		m.terminal = Must(openTerminal(m.Path(m.Log)))
		defer m.terminal.closeProcessEnd()
		m.Command.Terminal = m.terminal.end
	}
	m.Process = Must(m.Command.Start())
}

// Own makes the process run the present program again, with the given arguments, instead of semel.
func (m *Member) Own(args ...string) { m.Binary, m.Args = Must(os.Executable()), args }

// Kill ends the process with SIGKILL.
func (m *Member) Kill() {
	Check(m.Process.Kill())
	m.addDeliveries()
}

// Finish waits until the process has ended by itself with exit code 0, and returns the number of unfinished messages of
// a consumer.
func (m *Member) Finish(consumer string) (left int) {
	Check(m.Wait(0))
	if m.Status.ExitStatus() != 0 {
		Check(m.Failure())
	}
	return Must(m.Left(consumer))
}

// End sends SIGTERM and waits until the process has drained and ended.
func (m *Member) End() error {
	err := m.Process.End()
	m.addDeliveries()
	return err
}

// addDeliveries adds the deliveries of a process that has ended. The number of deliveries comes from the process's
// summary or, after a kill, from the last number on its terminal.
func (m *Member) addDeliveries() {
	if m.terminal == nil {
		return
	}
	m.terminal.wait()
	shown := m.terminal.shownDeliveries()
	if counts, err := m.Counts(Consumer); err == nil {
		shown = max(shown, counts.Deliveries)
	}
	m.delivered += shown
	m.terminal = nil
}

// Await waits until condition returns true, but at most for the time limit. The process must not end during the wait.
func (m *Member) Await(ctx context.Context, limit time.Duration, condition func() bool) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	During(m.Name+", "+m.Policy, func() {
		Until(within, 5*time.Millisecond, func() bool {
			if !Must(m.Running()) {
				Check(m.Failure())
			}
			return condition()
		})
	})
}

// Shown returns the number of deliveries that the current process has displayed.
func (m *Member) Shown() int64 {
	if m.terminal == nil {
		return 0
	}
	return m.terminal.shownDeliveries()
}

// Delivered returns the number of deliveries to all processes of this member.
func (m *Member) Delivered() int64 { return m.delivered + m.Shown() }

// Path returns the path of a file in the member's folder.
func (m *Member) Path(file string) string { return filepath.Join(m.Folder, file) }

// Failure returns the error for a process that ended by itself.
func (m *Member) Failure() error {
	return fmt.Errorf("%s: %w: %v; its last log line is %q", m.Name, processes.ErrEnded, m.Status, m.LastWords())
}

// LastWords returns the last line of the member's log.
func (m *Member) LastWords() string {
	text, _ := os.ReadFile(m.Path(m.Log))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
