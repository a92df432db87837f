package assembly

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Change describes the changes that Up made in a store.
type Change struct {
	Store string `json:"store"`
	// Applied are the names of the applied migrations. Setup is the executed setup file; empty if no setup
	// file was executed.
	Applied []string `json:"applied"`
	Setup   string   `json:"setup,omitempty"`
}

// Prepare checks all stores before a run. Prepare migrates the stores for which the policy sets migrate, or
// all stores if migrate is true. Prepare returns an error if the tables of a store do not fit this release.
func (a *Assembly) Prepare(ctx context.Context, migrate bool) error {
	if err := a.recordUnresponsive(ctx); err != nil {
		return err
	}
	for _, s := range a.Stores {
		if !migrate && !s.policy.Migrate || a.failedStores[s.Name()] != nil {
			continue
		}
		if _, err := s.Up(ctx, a.options.Who, "at the start of a run", []byte(a.policy.Audit.Key)); err != nil && (ctx.Err() != nil || !a.recordFailedStore(s.Name(), err)) {
			return err
		}
	}
	var faults []error
	for _, s := range a.Stores {
		if a.failedStores[s.Name()] != nil {
			continue
		}
		if err := a.CheckStore(ctx, s); err != nil && (ctx.Err() != nil || !a.recordFailedStore(s.Name(), err)) {
			faults = append(faults, err)
			continue
		}
		a.noteNewer(ctx, s)
		a.warnOfRights(ctx, s)
	}
	return errors.Join(faults...)
}

// noteNewer logs the migrations of a store that only a newer release knows.
func (a *Assembly) noteNewer(ctx context.Context, s *Store) {
	all, err := s.Status(ctx)
	if err != nil {
		return // Prepare has just read the migrations; if reading fails now, the run reports the same error
	}
	for _, m := range all {
		if m.SQL == "" {
			a.options.Logger.Info("the tables have a migration of a newer release; this release works with it", "store", s.Name(), "migration", m.String())
		}
	}
}

// Check returns an error that describes each store whose tables do not fit this release, with a remedy.
func (a *Assembly) Check(ctx context.Context) error {
	var faults []error
	for _, s := range a.Stores {
		faults = append(faults, a.CheckStore(ctx, s))
	}
	return errors.Join(faults...)
}

// warnOfRights logs which privileges on Semel's tables the database role lacks. warnOfRights ignores errors
// of the database, because the run reports these errors.
func (a *Assembly) warnOfRights(ctx context.Context, s *Store) {
	lacking, _ := s.tables.LackingRights(ctx)
	for _, warning := range lacking {
		a.options.Logger.Warn(warning, "store", s.Name())
	}
}

// WarnOfRoles logs two kinds of risk: schemas of the search_path in which other roles may create objects, and
// privileges on Semel's tables that the store's role lacks. Stores that do not respond are skipped. Stores in the map
// told are skipped too, because their risks were logged before; WarnOfRoles adds each checked store to the map.
func (a *Assembly) WarnOfRoles(ctx context.Context, told *sync.Map) {
	for _, s := range a.Stores {
		if _, already := told.LoadOrStore(s.Name(), true); already {
			continue
		}
		a.warnOfRights(ctx, s)
		open, err := s.tables.OpenSchemas(ctx)
		if err != nil {
			continue
		}
		for _, warning := range open {
			a.options.Logger.Warn(warning, "store", s.Name())
		}
	}
}

// CheckStore returns an error if the tables of a store do not fit this release.
func (a *Assembly) CheckStore(ctx context.Context, s *Store) error {
	err := s.Check(ctx)
	if err != nil && s.lacksMigration(ctx) {
		remedy := a.policy.Command("migrate", "up")
		if a.policy.Bare {
			remedy = "the program that owns the database migrates it"
		}
		err = fmt.Errorf("%w (%s)", err, remedy)
	}
	return s.Failed(err)
}

// Up applies the missing migrations, then runs the user's setup file if it has not run before. The audit
// trail records the changes with the parameters who and why. If Up creates the table of seals (the lines of
// the audit chain) and the parameter key is set, Up also starts the audit chain. If Up does not start the
// audit chain, only an operator can start the chain.
func (s *Store) Up(ctx context.Context, who, why string, key []byte) (Change, error) {
	change, err := s.up(ctx)
	if what := change.text(); what != "" {
		if why != "" {
			what += ": " + why
		}
		failed := s.Record(ctx, store.Act{Verb: "migrate", Who: who, Why: what})
		if failed == nil && len(key) > 0 && slices.Contains(change.Applied, makesSeals) {
			failed = s.beginChain(ctx, key)
		}
		err = errors.Join(err, s.Failed(failed))
	}
	return change, err
}

// beginChain starts the audit chain with the audit record of the first migration. beginChain tries again while a
// running consumer holds the lock for adding records to the chain. The consumer itself must not start an audit chain.
func (s *Store) beginChain(ctx context.Context, key []byte) error {
	for range 100 {
		done, err := s.Seal(ctx, admin.Sealing{Key: key, Whole: true})
		if err != nil || !done.Elsewhere {
			return err
		}
		if !timing.Wait(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	return errors.New("the chain of changes was not begun, because another process was sealing: run semel audit seal --begin")
}

// makesSeals is the migration that creates the table of seals, the lines of the audit chain.
const makesSeals = "0001_first"

// text describes the change for the audit trail. text returns "" if nothing changed.
func (c Change) text() string {
	var parts []string
	if len(c.Applied) > 0 {
		parts = append(parts, "applied "+strings.Join(c.Applied, ", "))
	}
	if c.Setup != "" {
		parts = append(parts, "ran "+c.Setup)
	}
	return strings.Join(parts, ", ")
}

func (s *Store) up(ctx context.Context) (Change, error) {
	change := Change{Store: s.Name(), Applied: []string{}}
	applied, err := s.Migrate(ctx)
	change.Applied = append(change.Applied, applied...)
	if err != nil {
		return change, s.Failed(err)
	}
	if s.policy.Setup == "" {
		return change, nil
	}
	text, err := shape.ReadFile(s.policy.Setup)
	if err != nil {
		return change, fmt.Errorf("store %s: setup: %w; name a readable file of SQL statements", s.Name(), err)
	}
	ran, err := s.Setup(ctx, s.policy.Setup, string(text))
	if err != nil {
		return change, fmt.Errorf("store %s: %w", s.Name(), s.explain(err))
	}
	if ran {
		change.Setup = s.policy.Setup
	}
	return change, nil
}

// Seed creates markers for the ids in one of the user's tables; see sqlstore.Store.Seed.
func (s *Store) Seed(ctx context.Context, o sqlstore.Seed) (sqlstore.Seeded, error) {
	sum, err := s.tables.Seed(ctx, o)
	return sum, s.Failed(err)
}

// Status returns the migrations of a store. Status also accepts a store that does not exist. If migrations
// are missing or the tables do not fit, the error wraps semel.ErrSchema, and Status still returns the
// migrations that it could read.
func Status(ctx context.Context, p *policy.Store) ([]sqlstore.Migration, error) {
	s, err := openIfThere(p)
	if err != nil {
		return nil, err
	}
	all, err := s.Status(ctx)
	if err == nil {
		err = s.Check(ctx)
	}
	return all, errors.Join(s.Failed(err), s.Close())
}

func openIfThere(p *policy.Store) (*Store, error) {
	if p.SQLite != nil {
		if _, err := os.Stat(p.SQLite.Path); errors.Is(err, os.ErrNotExist) {
			return openNothing(p)
		}
	}
	return openStore(p, openOptions{connections: 1})
}

// Print writes the SQL of a store's migrations. Print needs no database.
func Print(w io.Writer, p *policy.Store) error {
	s, err := openNothing(p)
	if err != nil {
		return err
	}
	return errors.Join(s.Print(w), s.Close())
}

// checkKey returns an error if the constraint of a business key is missing. Without the constraint,
// duplicates would not be recognised.
func (a *Assembly) checkKey(ctx context.Context, c *policy.Consumer, store *Store) error {
	key := c.Strategy.BusinessKey
	if key == nil {
		return nil
	}
	// If the database does not respond, the run reports the error.
	if there, err := store.hasUnique(ctx, key.Constraint); there || err != nil {
		return nil
	}
	return a.policy.Fault(fmt.Sprintf("consumers.%s.strategy.business_key.constraint", c.Name),
		fmt.Sprintf("the database has no unique constraint or index %q", key.Constraint),
		"use the name that the database reports, or create it, for example with setup: FILE.sql at the store")
}

// An index that belongs to a constraint has the constraint's name. The index of an exclusion constraint is
// not marked as unique, so the query searches constraints as well as indexes.
const postgresUnique = `select exists (
	select 1 from pg_class c join pg_index i on i.indexrelid = c.oid where c.relname = $1::name and i.indisunique
	union all
	select 1 from pg_constraint where conname = $1::name and contype in ('p', 'u', 'x'))`

func (d *postgres) hasUnique(ctx context.Context, constraint string) (there bool, err error) {
	err = d.db.QueryRowContext(ctx, postgresUnique, constraint).Scan(&there)
	return there, err
}

const sqliteUnique = `select exists (
	select 1 from pragma_index_list(?1) l where l."unique" = 1 and ?2 = (
		select group_concat(name) from (select lower(name) as name from pragma_index_info(l.name) order by seqno))
	union all
	select 1 where ?2 = (
		select group_concat(name) from (select lower(name) as name from pragma_table_info(?1) where pk > 0 order by pk)))`

// hasUnique compares the constraint's columns, with their tables and in order, because violationCheck
// compares columns in the same way.
func (d *sqlite) hasUnique(ctx context.Context, constraint string) (there bool, err error) {
	var table string
	var columns []string
	for _, part := range strings.Fields(strings.ReplaceAll(constraint, ",", " ")) {
		of, column, ok := strings.Cut(part, ".")
		if !ok || table != "" && !strings.EqualFold(of, table) {
			return false, nil
		}
		table, columns = of, append(columns, strings.ToLower(column))
	}
	err = d.db.QueryRowContext(ctx, sqliteUnique, table, strings.Join(columns, ",")).Scan(&there)
	return there, err
}

// Query implements the interface database with a read-only transaction.
func (d *postgres) Query(ctx context.Context, query string, each func(*sql.Rows) error) error {
	tx, err := d.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	err = eachRow(ctx, tx, query, each)
	return errors.Join(err, tx.Rollback())
}

// Query implements the interface database with a connection that cannot write.
func (d *sqlite) Query(ctx context.Context, query string, each func(*sql.Rows) error) error {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "pragma query_only = on"); err != nil {
		return err
	}
	err = eachRow(ctx, c, query, each)
	_, back := c.ExecContext(context.WithoutCancel(ctx), "pragma query_only = off")
	return errors.Join(err, back)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func eachRow(ctx context.Context, q querier, query string, each func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
