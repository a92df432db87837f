//go:build unix

package prooffile

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// member is one process of a fleet, over all its restarts.
type member struct {
	command
	// name is what the server knows it by.
	name, input string
	batch       int
	timeout     time.Duration
	process     *process
}

// postgresSetup has no unique key in the log, either.
const postgresSetup = `create table counters (
    type text not null, repository text not null, n bigint not null,
    primary key (type, repository)
);
create table effects (
    delivery text not null, type text not null, repository text not null
);
`

func newMember(p Fleet, dsn string, n int) *member {
	name := fmt.Sprintf("member-%d", n+1)
	return &member{
		command: command{binary: p.Binary, folder: p.Folder, policy: name + ".yaml", log: name + ".log", summary: name + ".json",
			env: []string{"DATABASE=" + dsn + "&application_name=" + name}},
		name: name, input: name + ".jsonl", batch: p.Batch, timeout: p.Timeout,
	}
}

func (m *member) path(file string) string { return filepath.Join(m.folder, file) }

// start starts the process. With follow it never ends by itself.
func (m *member) start(follow bool) error {
	text := fmt.Appendf(nil, policy, `postgres: {url: "${DATABASE}"}`, m.input, follow, m.batch, m.timeout)
	err := os.WriteFile(m.path(m.policy), text, 0o644)
	if err == nil {
		m.process, err = m.command.start()
	}
	return err
}

// end has the process drain and end, or end at once if it has not started yet.
func (m *member) end() error {
	if err := syscall.Kill(m.process.pid, syscall.SIGTERM); err != nil {
		return err
	}
	if err := m.process.wait(0); err != nil {
		return err
	}
	early := m.process.status.Signaled() && m.process.status.Signal() == syscall.SIGTERM
	if code := m.process.status.ExitStatus(); code != 0 && code != 130 && !early {
		return fmt.Errorf("%s was to drain and ended with %d", m.name, code)
	}
	return nil
}
