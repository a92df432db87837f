//go:build unix

package prooffile

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-go/semel/itest/processes"
)

// member is one process of a fleet, over all its restarts.
type member struct {
	processes.Command
	// name is what the server knows it by.
	name, input string
	batch       int
	timeout     time.Duration
	process     *processes.Process
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
		Command: processes.Command{Binary: p.Binary, Folder: p.Folder, Policy: name + ".yaml", Log: name + ".log", Summary: name + ".json",
			Env: []string{"DATABASE=" + dsn + "&application_name=" + name}},
		name: name, input: name + ".jsonl", batch: p.Batch, timeout: p.Timeout,
	}
}

func (m *member) path(file string) string { return filepath.Join(m.Folder, file) }

// start starts the process. With follow it never ends by itself.
func (m *member) start(follow bool) error {
	text := fmt.Appendf(nil, policy, `postgres: {url: "${DATABASE}"}`, m.input, follow, m.batch, m.timeout)
	err := os.WriteFile(m.path(m.Policy), text, 0o644)
	if err == nil {
		m.process, err = m.Command.Start()
	}
	return err
}
