//go:build unix

package neighbours

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/processes"
)

// newer builds the present tree with a migration that is to come, which adds a
// table.
func newer(t *testing.T) Release {
	t.Helper()
	folder := t.TempDir()
	migration := filepath.Join(folder, "later.sql")
	root, err := output(exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel"))
	if err != nil {
		t.Fatal(err)
	}
	migrations, err := filepath.Glob(filepath.Join(root, "sqlstore/sqlite/migrations/*.sql"))
	if err != nil || len(migrations) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	next := filepath.Join(filepath.Dir(migrations[0]), fmt.Sprintf("%04d_later.sql", len(migrations)+1))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{next: migration}})
	if err := errors.Join(err, os.WriteFile(migration, []byte("create table {prefix}later (number integer primary key);\n"), 0o644),
		os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o644)); err != nil {
		t.Fatal(err)
	}
	binary, err := processes.Build(t.Context(), folder, "-overlay", filepath.Join(folder, "overlay.json"))
	if err != nil {
		t.Fatal(err)
	}
	return Release{Name: "newer", Binary: binary}
}

// A release that adds to the schema: where its neighbour does not work on, it
// says by name why.
func TestAReleaseWithAMigrationTakesOver(t *testing.T) {
	_, present := neighbours(t)
	next := newer(t)
	for name, order := range map[string][2]Release{"P1_a_migration_comes_while_the_earlier_release_works": {present, next},
		"P1_a_migration_stands_before_the_earlier_release_starts": {next, present}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := prove(t, inFile, order[0], order[1], 400, 3)
			if err := ledger.Fault(); err != nil {
				t.Error(err)
			}
			if ledger.Refusals == 0 || ledger.By[next.Name] == 0 {
				t.Errorf("%+v", ledger)
			}
		})
	}
}

func TestANewerSchemaIsRefusedBeforeTheFirstFetch(t *testing.T) {
	earlier, present := neighbours(t)
	refuses := func(open opener, release Release) func(*testing.T) {
		return func(t *testing.T) { refusesANewerSchema(t, open, release) }
	}
	t.Run("P1_the_earlier_release_refuses_a_newer_schema_on_SQLite", refuses(inFile, earlier))
	t.Run("P1_the_earlier_release_refuses_a_newer_schema_on_PostgreSQL", refuses(inServer, earlier))
	t.Run("P1_the_present_release_refuses_a_newer_schema_on_SQLite", refuses(inFile, present))
	t.Run("P1_the_present_release_refuses_a_newer_schema_on_PostgreSQL", refuses(inServer, present))
}

func refusesANewerSchema(t *testing.T, open opener, release Release) {
	t.Helper()
	ctx, folder := t.Context(), t.TempDir()
	store := open(t, folder)
	proof := &Proof{First: release, Second: release, Store: store, Feed: Feed{IDs: 20, Seed: 1}, Folder: folder, Progress: t.Output()}
	r := &run{Proof: proof, ledger: newLedger(*proof)}
	if err := r.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	s := r.slots[0]
	if err := s.migrate(); err != nil {
		t.Fatal(err)
	}
	if err := store.Exec(ctx, `insert into semel_migrations select 99, 'later', checksum, at from semel_migrations where version = 1`); err != nil {
		t.Fatal(err)
	}
	if err := s.migrate(); !errors.Is(err, errNewer) {
		t.Errorf("semel migrate up: %v", err)
	}
	if err := s.end("run"); err == nil || s.process.Status.ExitStatus() != 1 {
		t.Errorf("semel run: %v, %v", err, s.process.Status)
	}
	log, err := os.ReadFile(filepath.Join(folder, s.log(release)))
	if err != nil || !strings.Contains(string(log), "0099_later, "+unknown+": use the newer release") {
		t.Errorf("it says %s (%v)", log, err)
	}
	var touched int
	if err := store.Reader().QueryRowContext(ctx, `select (select count(*) from effects) + (select count(*) from semel_scopes)
		+ (select count(*) from semel_positions) + (select count(*) from semel_inbox)`).Scan(&touched); err != nil || touched != 0 {
		t.Errorf("%d rows were written: %v", touched, err)
	}
}
