//go:build unix

// Package postgres tests the binary with consumers that write to PostgreSQL.
package postgres

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// fixture is what a test uses: the binary, a folder with a policy, and a database.
type fixture struct{ binary, dir, dsn string }

// example returns a folder with the policies of examples/payments, and a database.
func example(t *testing.T, dsn string) fixture {
	t.Helper()
	s := fixture{dir: t.TempDir(), dsn: dsn}
	copyExample(t, s.dir, "../../../examples/payments")
	s.binary = os.Getenv(built)
	return s
}

// The environment variable with the path of the binary, which is built once.
const built = "SEMELPG_BINARY"

func TestMain(m *testing.M) { os.Exit(processes.WithBinary(m, built)) }

// copyExample copies the policies and the files that the policies read. A database that an earlier run in this clone
// has left is not copied, because with such a database the next run would find only duplicates.
func copyExample(t *testing.T, to, from string) {
	t.Helper()
	for _, name := range []string{"postgres.yaml", "semel.yaml", "setup-postgres.sql", "setup.sql", "payments.jsonl"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnExampleThatWasRunIsStillNew(t *testing.T) {
	clone := t.TempDir()
	copyExample(t, clone, "../../../examples/payments")
	fixture{dir: clone}.write(t, "payments.db", "what a run left")
	fresh := t.TempDir()
	copyExample(t, fresh, clone)
	if _, err := os.Stat(filepath.Join(fresh, "payments.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy has the database of another run: %v", err)
	}
}

// result is the exit code and the output of a command.
type result struct {
	code        int
	out, errors string
}

func (s fixture) semel(t *testing.T, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.binary, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "DATABASE_URL="+s.dsn)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), log.String()}
}

// runJSON runs semel, checks that semel succeeds, and decodes its JSON output.
func (s fixture) runJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	r := s.semel(t, args...)
	if r.code != 0 {
		t.Fatalf("semel %v ended with %d: %s", args, r.code, r.errors)
	}
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		t.Fatalf("semel %v: %v in %s", args, err, r.out)
	}
}

// runRefused runs semel, and checks that semel exits with 1 and prints all given texts on one line.
func (s fixture) runRefused(t *testing.T, says []string, args ...string) {
	t.Helper()
	if args[0] == "run" { // on a slow server, semel also logs that it waits
		args = append(args, "--log-level", "error")
	}
	r := s.semel(t, args...)
	if r.code != 1 || strings.Count(strings.TrimSpace(r.errors), "\n") != 0 {
		t.Errorf("semel %v ended with %d: %s", args, r.code, r.errors)
	}
	for _, want := range says {
		if !strings.Contains(r.errors, want) {
			t.Errorf("semel %v does not say %q: %s", args, want, r.errors)
		}
	}
}

func (s fixture) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// edit writes a copy of postgres.yaml with replaced parts.
func (s fixture) edit(t *testing.T, name string, pieces ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "postgres.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, name, strings.NewReplacer(pieces...).Replace(string(text)))
}

// queryOne returns the value of a query that returns a single value.
func queryOne[T any](t *testing.T, dsn, query string, args ...any) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}
