//go:build unix

package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// Member is one process of a fleet, over all its restarts.
type Member struct {
	processes.Command
	*processes.Process
	// Name is what servers know it by.
	Name string
	// Counted has its deliveries counted, on Linux.
	Counted   bool
	terminal  *terminal // where the present run shows them
	delivered int64     // in the runs that are over
}

// Start starts the process; its policy is there.
func (m *Member) Start() (err error) {
	if m.Counted {
		if m.terminal, err = openTerminal(m.Path(m.Log)); err != nil {
			return err
		}
		defer m.terminal.given()
		m.Command.Terminal = m.terminal.end
	}
	m.Process, err = m.Command.Start()
	return err
}

// Kill ends the process with SIGKILL.
func (m *Member) Kill() error {
	if err := m.Process.Kill(); err != nil {
		return err
	}
	m.over()
	return nil
}

// End has the process drain and end.
func (m *Member) End() error {
	err := m.Process.End()
	m.over()
	return err
}

// over counts the deliveries of a run that has ended: as it said itself, or,
// if it was killed, as its terminal last showed.
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

// Shown is what the present run has shown to be delivered.
func (m *Member) Shown() int64 {
	if m.terminal == nil {
		return 0
	}
	return m.terminal.deliveries()
}

// Delivered is what was delivered in all runs.
func (m *Member) Delivered() int64 { return m.delivered + m.Shown() }

// Path is where a file of its folder is.
func (m *Member) Path(file string) string { return filepath.Join(m.Folder, file) }

// ended is the error of a process that ended by itself.
func (m *Member) ended() error {
	return fmt.Errorf("%s: %w: %v; it said %q", m.Name, processes.ErrEnded, m.Status, m.LastWords())
}

// LastWords is the last line of the log.
func (m *Member) LastWords() string {
	text, _ := os.ReadFile(m.Path(m.Log))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
