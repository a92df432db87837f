//go:build unix

package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// Member is one process of a fleet, including all its restarts.
type Member struct {
	processes.Command
	*processes.Process
	// Name identifies the process at the servers.
	Name string
	// Counted makes the proof count the member's deliveries. Counting works on Linux only.
	Counted   bool
	terminal  *terminal // terminal on which the current process displays its deliveries
	delivered int64     // deliveries of the earlier processes of this member
}

// Start starts the process. Its policy must exist.
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

// End sends SIGTERM and waits until the process has drained and ended.
func (m *Member) End() error {
	err := m.Process.End()
	m.over()
	return err
}

// over adds the deliveries of a process that has ended. They come from the process's summary or, after a
// kill, from the last number on its terminal.
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

// Shown returns the number of deliveries that the current process has displayed.
func (m *Member) Shown() int64 {
	if m.terminal == nil {
		return 0
	}
	return m.terminal.deliveries()
}

// Delivered returns the number of deliveries to all processes of this member.
func (m *Member) Delivered() int64 { return m.delivered + m.Shown() }

// Path returns the path of a file in the member's folder.
func (m *Member) Path(file string) string { return filepath.Join(m.Folder, file) }

// ended returns the error for a process that ended by itself.
func (m *Member) ended() error {
	return fmt.Errorf("%s: %w: %v; its last log line is %q", m.Name, processes.ErrEnded, m.Status, m.LastWords())
}

// LastWords returns the last line of the member's log.
func (m *Member) LastWords() string {
	text, _ := os.ReadFile(m.Path(m.Log))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
