//go:build unix

package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/history"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// later contains a future migration for each dialect.
var later = map[string]string{
	"sqlite":   "create table {prefix}later (number integer primary key);\n",
	"postgres": "alter table {prefix}inbox add column later text;\n",
}

// buildNewer builds the current tree with a future migration that has the given number.
func buildNewer(t *testing.T, number int) Release {
	t.Helper()
	folder := t.TempDir()
	root := must.Get(history.Root(t.Context()))(t)
	replace := map[string]string{}
	for dialect, statement := range later {
		migration := filepath.Join(folder, dialect+".sql")
		replace[filepath.Join(root, fmt.Sprintf("sqlstore/%s/migrations/%04d_later.sql", dialect, number))] = migration
		must.OK(t, os.WriteFile(migration, []byte(statement), 0o644))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must.OK(t, errors.Join(err, os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o644)))
	binary := must.Get(processes.Build(t.Context(), folder, "-overlay", filepath.Join(folder, "overlay.json")))(t)
	return Release{Name: "newer", Binary: binary}
}

// If a release only adds to the schema, the previous release continues to work, even if it starts after the
// migration. If a release has a new major version of the schema, the previous release refuses to start, and
// its error names the migration.
func TestAReleaseWithAMigrationTakesOver(t *testing.T) {
	_, present := neighbourReleases(t)
	adds, breaks := buildNewer(t, 99), buildNewer(t, 1000)
	t.Run("L5_others_work_while_a_migration_waits_for_a_table", func(t *testing.T) { worksBesideAMigration(t, present, adds) })
	for name, run := range map[string]struct {
		first, second, newer Release
	}{
		"P1_a_migration_comes_while_the_earlier_release_works":                 {present, adds, adds},
		"P1_a_migration_stands_before_the_earlier_release_starts":              {adds, present, adds},
		"P1_a_new_major_version_comes_while_the_earlier_release_works":         {present, breaks, breaks},
		"P1_a_new_major_version_stands_before_the_earlier_release_would_start": {breaks, present, breaks},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := prove(t, newFileStore, run.first, run.second, 900, 3)
			if err := ledger.Fault(); err != nil {
				t.Error(err)
			}
			if refuses := run.newer == breaks; refuses != (ledger.Refusals > 0) || ledger.By[run.newer.Name] == 0 {
				t.Errorf("%+v", ledger)
			}
		})
	}
}

// worksBesideAMigration makes a release alter a table while a long transaction reads the table.
func worksBesideAMigration(t *testing.T, present, adds Release) {
	r := newRun(t, newServerStore, present)
	s := r.slots[0]
	must.OK(t, s.migrate())
	db := r.Store.(server).DB
	report := must.Get(db.BeginTx(t.Context(), nil))(t)
	defer func() { _ = report.Rollback() }()
	must.Get(report.ExecContext(t.Context(), "select count(*) from semel_inbox"))(t)
	s.release = adds
	result := make(chan error, 1)
	go func() { result <- s.migrate() }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less time than the migration waits for the lock
	defer cancel()
	for waits := 0; waits == 0; processes.Pause(ctx, 5*time.Millisecond) {
		must.OK(t, db.QueryRowContext(ctx, "select count(*) from pg_locks where not granted and relation = 'semel_inbox'::regclass").Scan(&waits))
	}
	if _, err := db.ExecContext(ctx, "delete from semel_inbox"); err != nil {
		t.Errorf("behind the migration that waits: %v", err)
	}
	if err := errors.Join(report.Rollback(), <-result); err != nil {
		t.Errorf("once the table was free: %v", err)
	}
}

func TestANewerSchemaIsRefusedBeforeTheFirstFetch(t *testing.T) {
	earlier, present := neighbourReleases(t)
	refuses := func(open opener, release Release) func(*testing.T) {
		return func(t *testing.T) { refusesANewerSchema(t, open, release) }
	}
	t.Run("P1_the_earlier_release_refuses_a_newer_schema_on_SQLite", refuses(newFileStore, earlier))
	t.Run("P1_the_earlier_release_refuses_a_newer_schema_on_PostgreSQL", refuses(newServerStore, earlier))
	t.Run("P1_the_present_release_refuses_a_newer_schema_on_SQLite", refuses(newFileStore, present))
	t.Run("P1_the_present_release_refuses_a_newer_schema_on_PostgreSQL", refuses(newServerStore, present))
}

// newRun returns a run of one release, with its files and its effect log.
func newRun(t *testing.T, open opener, release Release) *run {
	t.Helper()
	s := proof.InTest(t)
	p := &Proof{First: release, Second: release, Store: open(t, s.Folder), Source: Files(s.Folder), Feed: Feed{IDs: 20, Seed: 1}, Stage: s}
	r := &run{Proof: p, ledger: newLedger(*p)}
	r.prepare(t.Context())
	return r
}

func refusesANewerSchema(t *testing.T, open opener, release Release) {
	t.Helper()
	ctx := t.Context()
	r := newRun(t, open, release)
	s := r.slots[0]
	must.OK(t, s.migrate())
	must.OK(t, r.Store.Exec(ctx, `insert into semel_migrations select 1099, 'later', checksum, at from semel_migrations where version = 1`))
	if err := s.migrate(); !errors.Is(err, errNewer) {
		t.Errorf("semel migrate up: %v", err)
	}
	if err := s.end("run"); err == nil || s.process.Status.ExitStatus() != 1 {
		t.Errorf("semel run: %v, %v", err, s.process.Status)
	}
	log, err := os.ReadFile(r.Path(s.log(release)))
	if err != nil || !strings.Contains(string(log), "1099_later, "+unknown) || !strings.Contains(string(log), "use the newer release that applied it") {
		t.Errorf("it says %s (%v)", log, err)
	}
	var touched int
	if err := r.Store.Reader().QueryRowContext(ctx, `select (select count(*) from effects) + (select count(*) from semel_scopes)
		+ (select count(*) from semel_positions) + (select count(*) from semel_inbox)`).Scan(&touched); err != nil || touched != 0 {
		t.Errorf("%d rows were written: %v", touched, err)
	}
}

func TestWhatANewerReleaseMarkedIsHeldAndNamed(t *testing.T) {
	_, present := neighbourReleases(t)
	t.Run("P1_outcomes_of_a_newer_release_are_held_and_named_on_SQLite", func(t *testing.T) { holdsNewerOutcomes(t, newFileStore, present) })
	t.Run("P1_outcomes_of_a_newer_release_are_held_and_named_on_PostgreSQL", func(t *testing.T) { holdsNewerOutcomes(t, newServerStore, present) })
}

// holdsNewerOutcomes gives a release markers with an outcome that the release does not know, and later changes the
// outcome of these markers to a known one.
func holdsNewerOutcomes(t *testing.T, open opener, release Release) {
	t.Helper()
	ctx := t.Context()
	r := newRun(t, open, release)
	s := r.slots[0]
	effects := func(when string) {
		t.Helper()
		if n, err := r.Store.Effects(ctx); err != nil || n != r.Feed.countEffects() {
			t.Errorf("%s %d effects stand, not %d: %v", when, n, r.Feed.countEffects(), err)
		}
	}
	must.OK(t, errors.Join(s.migrate(), s.end("run")))
	effects("before it")
	if _, ok := r.Store.(server); ok { // the test drops the constraint, as a newer release would do
		must.OK(t, r.Store.Exec(ctx, `alter table semel_markers drop constraint known_outcomes`))
	}
	if err := errors.Join(r.Store.Exec(ctx, `update semel_markers set outcome = 9 where outcome = 1`),
		r.Store.Exec(ctx, `delete from semel_positions`), // the position advances when messages are acked
		s.writePolicy(true), os.Truncate(r.Path(s.log(release)), 0)); err != nil {
		t.Fatal(err)
	}
	s.process = must.Get(s.command("run").Start())(t)
	t.Cleanup(func() { _ = s.process.Kill() })
	must.OK(t, untilSaid(ctx, s, "outcome 9, which a newer release wrote"))
	if err := s.process.End(); err != nil {
		t.Error(err)
	}
	effects("while they are unknown")
	must.OK(t, r.Store.Exec(ctx, `update semel_markers set outcome = 1 where outcome = 9`))
	must.OK(t, s.end("run"))
	effects("after it")
	if counts, err := s.command().Counts("counter"); err != nil || counts.Deliveries == 0 || counts.Duplicates != counts.Deliveries {
		t.Errorf("what was held did not come again as duplicates: %+v, %v", counts, err)
	}
}

// untilSaid waits until the log of the slot's process contains the text.
func untilSaid(ctx context.Context, s *slot, text string) error {
	most, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		log, err := os.ReadFile(s.proof.Path(s.log(s.release)))
		if err != nil || strings.Contains(string(log), text) {
			return err
		}
		if alive, err := s.process.Running(); err != nil || !alive || most.Err() != nil {
			return fmt.Errorf("it says %s, not %q (%w)", log, text, errors.Join(err, most.Err()))
		}
		processes.Pause(most, 5*time.Millisecond)
	}
}
