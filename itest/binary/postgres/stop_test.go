//go:build unix

package postgres

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/services"
)

const slowly = `version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true, setup: slow.sql}}
sources: {orders: {file: {path: slow.jsonl, format: json}}}
consumers:
  orders:
    from: orders
    store: shop
    identity: {id: "body:/id"}
    drain: 1s
    handler: {sql: {params: {id: "body:/id"}, statements: ["insert into slow (id) select :id from pg_sleep(0.2)"]}}
`

func TestAStopDoesNotWaitForADatabaseThatIsBusy(t *testing.T) {
	t.Run("case_10_a_long_commit_and_a_frozen_server_hold_the_process_for_seconds", func(t *testing.T) {
		for _, frozen := range []bool{false, true} {
			s := example(t, services.Postgres(t))
			s.write(t, "slow.yaml", slowly)
			s.write(t, "slow.sql", "create table slow (id text primary key);")
			var lines strings.Builder
			for i := range 400 {
				fmt.Fprintf(&lines, "{\"id\":\"%d\"}\n", i)
			}
			s.write(t, "slow.jsonl", lines.String())
			cmd, log := s.startCommand(t, "run", "--config", "slow.yaml")
			backend := s.sleeper(t)
			if frozen {
				if err := syscall.Kill(backend, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = syscall.Kill(backend, syscall.SIGCONT) })
			}
			began := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			guard := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait() // the caller checks the exit code
			guard.Stop()
			t.Logf("frozen %v: it took %v\n%s", frozen, time.Since(began), log)
			if took := time.Since(began); took > 25*time.Second || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log.String(), "its outcome is unknown") {
				t.Errorf("frozen %v: exit code %d after %v: %s", frozen, cmd.ProcessState.ExitCode(), took, log)
			}
		}
	})
}

// startCommand starts a command in the background. Read stderr only after the command has ended.
func (s fixture) startCommand(t testing.TB, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd, log := exec.Command(s.binary, args...), &bytes.Buffer{}
	cmd.Dir, cmd.Env, cmd.Stderr = s.dir, append(os.Environ(), "DATABASE_URL="+s.dsn), log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, log
}

// sleeper waits until the consumer's connection executes its slow statement, and returns the id of the server
// process.
func (s fixture) sleeper(t *testing.T) (pid int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	const query = `select coalesce(max(pid), 0) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`
	for pid == 0 {
		if err := conn.QueryRow(t.Context(), query).Scan(&pid); err != nil {
			t.Fatal(err)
		}
	}
	return pid
}
