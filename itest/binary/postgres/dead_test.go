//go:build unix

package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/services"
)

const needy = `version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true, setup: needy.sql}}
sources: {orders: {file: {path: needy.jsonl, format: json}}}
consumers:
  orders:
    from: orders
    store: shop
    identity: {id: "body:/id"}
    on_parked: skip
    handler:
      sql:
        params: {id: "body:/id", n: "body:/n", account: "body:/account"}
        statements: [{sql: "insert into effects (id, n) select :id, :n from accounts where account = :account", rows: 1, otherwise: park}]
`

// The number of dead letters.
const letters = 120

// newLetters returns a test database with parked messages. The cause for which the messages were parked has been
// repaired.
func newLetters(t *testing.T) fixture {
	t.Helper()
	s := example(t, services.Postgres(t))
	s.write(t, "dead.yaml", needy)
	s.write(t, "needy.sql", "create table accounts (account text primary key); create table effects (number bigint generated always as identity, id text, n text);")
	var lines strings.Builder
	for i := range letters {
		fmt.Fprintf(&lines, "{\"id\":\"%d\",\"n\":\"%d\",\"account\":\"ann\"}\n", i, i)
	}
	s.write(t, "needy.jsonl", lines.String())
	if r := s.semel(t, "run", "--config", "dead.yaml"); r.code != 0 {
		t.Fatal(r.errors)
	}
	services.Exec(t, s.dsn, "insert into accounts values ('ann')")
	return s
}

// replayOutput is the JSON output of a replay of parked messages.
type replayOutput struct {
	Predicted, Happened map[string]int
	Changed             int
}

// startReplay starts a process that replays all parked messages.
func (s fixture) startReplay(t *testing.T, more ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.binary, append([]string{"messages", "retry", "--config", "dead.yaml", "--all", "--yes", "--run", "--because", "mended", "-o", "json"}, more...)...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "DATABASE_URL="+s.dsn)
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// waitReplay waits until a replay has ended, checks that the replay succeeded, and decodes its output.
func waitReplay(t *testing.T, cmd *exec.Cmd, out *bytes.Buffer) (d replayOutput) {
	t.Helper()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s%s", err, out, cmd.Stderr)
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// query reads one row of the database.
func (s fixture) query(t *testing.T, query string, into ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query).Scan(into...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// wantEffects checks that each parked message has taken effect once, and that one change is recorded for each message.
func (s fixture) wantEffects(t *testing.T) {
	t.Helper()
	var effects, distinct, acts, rows int
	s.query(t, "select count(*), count(distinct id) from effects", &effects, &distinct)
	s.query(t, `select count(*), count(distinct "row") from semel_acts where verb = 'retry'`, &acts, &rows)
	if effects != letters || distinct != letters || acts != letters || rows != letters {
		t.Errorf("%d effects of %d letters, %d acts of %d rows; want %d, each once", effects, distinct, acts, rows, letters)
	}
}

func TestReplaysOfLettersOnPostgreSQL(t *testing.T) {
	t.Run("trap_T47_of_two_operators_who_replay_at_once_each_letter_is_replayed_once", func(t *testing.T) {
		s := newLetters(t)
		first, out := s.startReplay(t)
		second, other := s.startReplay(t)
		a, b := waitReplay(t, first, out), waitReplay(t, second, other)
		if a.Happened["applied"]+b.Happened["applied"] != letters || a.Changed+b.Changed != 0 {
			t.Errorf("happened: %+v and %+v", a, b)
		}
		s.wantEffects(t)
		var again replayOutput
		s.runJSON(t, &again, "messages", "retry", "--config", "dead.yaml", "--all", "--state", "applied", "--run", "--because", "trap 19: again", "-o", "json")
		if again.Happened["skipped as applied"] != letters {
			t.Errorf("again: %+v", again)
		}
		s.wantEffects(t)
	})
	t.Run("trap_T45_killed_again_and_again_beside_live_copies_it_goes_on_and_each_letter_has_one_effect", func(t *testing.T) {
		s := newLetters(t)
		killed := 0
		for round := 0; round < 6; round++ {
			replay, _ := s.startReplay(t, "--rate", "60")
			copies := exec.CommandContext(t.Context(), s.binary, "run", "--config", "dead.yaml", "--from-start")
			copies.Dir, copies.Env = s.dir, append(os.Environ(), "DATABASE_URL="+s.dsn)
			if err := copies.Start(); err != nil {
				t.Fatal(err)
			}
			death := time.AfterFunc(400*time.Millisecond, func() { _ = replay.Process.Kill() })
			if err := replay.Wait(); err != nil {
				killed++
			}
			death.Stop()
			if err := copies.Wait(); err != nil {
				t.Fatal(err)
			}
			services.Exec(t, s.dsn, "delete from semel_keys") // replaces a wait for the end of the killed process's lease
		}
		replay, out := s.startReplay(t)
		d := waitReplay(t, replay, out)
		t.Logf("killed %d times; at last predicted %v, happened %v", killed, d.Predicted, d.Happened)
		if d.Changed != 0 || killed < 3 {
			t.Errorf("killed %d times; %+v", killed, d)
		}
		s.wantEffects(t)
	})
	t.Run("trap_T46_an_edit_keeps_the_identity_and_is_refused_once_it_took_effect", func(t *testing.T) {
		s := newLetters(t)
		s.write(t, "fixed.json", `{"id":"7","n":"fixed","account":"ann"}`)
		var list struct{ Rows []struct{ Number int64 } }
		s.runJSON(t, &list, "messages", "ls", "--config", "dead.yaml", "--id", "7", "-o", "json")
		if len(list.Rows) != 1 {
			t.Fatalf("%d letters", len(list.Rows))
		}
		number := fmt.Sprint(list.Rows[0].Number)
		edit := []string{"messages", "edit", number, "--config", "dead.yaml", "--payload", "fixed.json", "--yes", "--because", "wrong"}
		if r := s.semel(t, edit...); r.code != 0 {
			t.Fatal(r.errors)
		}
		replay, out := s.startReplay(t)
		if d := waitReplay(t, replay, out); d.Changed != 0 || d.Happened["applied"] != letters {
			t.Errorf("%+v", d)
		}
		if r := s.semel(t, edit...); r.code != 1 || !strings.Contains(r.errors, "is applied") {
			t.Errorf("an edit of what took effect: %d %s", r.code, r.errors)
		}
		if r := s.semel(t, "run", "--config", "dead.yaml", "--from-start"); r.code != 0 {
			t.Fatal(r.errors)
		}
		s.wantEffects(t)
		var values []string
		s.query(t, "select array_agg(n) from effects where id = '7'", &values)
		if !slices.Equal(values, []string{"fixed"}) {
			t.Errorf("the effects are %q", values)
		}
	})
}
