package sqlstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Migration is one change of the schema.
type Migration struct {
	Version int
	Name    string
	// Checksum is the hash of the SQL, which contains the table prefix.
	Checksum string
	// AppliedAt is the time at which the migration was applied, by the database's clock; zero if the migration is not
	// applied.
	AppliedAt time.Time
	// SQL is the text of the migration. SQL is empty if only a newer release knows the migration. This release works
	// with a newer migration within the same major version of the schema.
	SQL string
}

// A statement that limits the time for which a migration waits for the lock of a table. All other users of the table
// must wait as long.
const tableWait = "set local lock_timeout = '1s'"

// The maximum number of attempts of a migration if a table is locked. Between two attempts, transactions can run that
// had to wait for the migration.
const migrateTries = 30

// The number of migrations in a major version of the schema: the first major version has the migration numbers below
// 1000, and the second begins with 1000. Within a major version, migrations only add to the schema, so that older
// releases still work.
const aMajor = 1000

// isIncompatible reports whether m belongs to a later major version than the last migration that this release knows
// (the parameter known).
func (m Migration) isIncompatible(known Migration) bool {
	return m.Version/aMajor > known.Version/aMajor
}

// String returns version and name of the migration.
func (m Migration) String() string { return fmt.Sprintf("%04d_%s", m.Version, m.Name) }

// loadMigrations returns the migrations that this release knows, in order.
func loadMigrations(db *database.DB) ([]Migration, error) {
	entries, err := fs.ReadDir(db.Dialect.Files, db.Dialect.Name+"/migrations")
	if err != nil {
		return nil, err
	}
	known := make([]Migration, len(entries))
	for i, e := range entries {
		text, err := fs.ReadFile(db.Dialect.Files, db.Dialect.Name+"/migrations/"+e.Name())
		if err != nil {
			return nil, err
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(db.Names.Replace(string(text))))
		body, err := db.Dialect.Exact(db.Names, string(text))
		if err != nil {
			return nil, err
		}
		known[i] = Migration{Version: version, Name: name, Checksum: hex.EncodeToString(sum[:]), SQL: body}
	}
	return known, nil
}

// Status returns every migration that this release knows or the database has, in order. If a migration in the database
// has other content, or belongs to a later major version, the error wraps semel.ErrSchema. For a later major version,
// Status returns the migrations together with the error.
func (s *Store) Status(ctx context.Context) ([]Migration, error) {
	known, err := loadMigrations(s.db)
	if err != nil {
		return nil, err
	}
	applied, err := appliedMigrations(ctx, s.db)
	if err != nil {
		return nil, s.db.Blameless("status", err)
	}
	return merge(known, applied)
}

// merge combines the migrations that this release knows with the migrations in the database.
func merge(known, applied []Migration) ([]Migration, error) {
	all, last := slices.Clone(known), known[len(known)-1]
	var refused error
	for _, a := range applied {
		i := slices.IndexFunc(all, func(m Migration) bool { return m.Version == a.Version })
		switch {
		case i < 0 && a.isIncompatible(last):
			refused = fmt.Errorf("sqlstore: the schema has migration %v, which this release does not know: "+
				"it is of a later major version; use the newer release that applied it: %w", a, semel.ErrSchema)
			all = append(all, a)
		case i < 0:
			all = append(all, a)
		case all[i].Checksum != a.Checksum:
			return nil, fmt.Errorf("sqlstore: migration %v was applied with another content than this release has: "+
				"the table prefix or the release is not the one that made the schema: %w", all[i], semel.ErrSchema)
		default:
			all[i].AppliedAt = a.AppliedAt
		}
	}
	slices.SortStableFunc(all, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	return all, refused
}

func appliedMigrations(ctx context.Context, s *database.DB) ([]Migration, error) {
	var there bool
	if err := s.Pool.QueryRowContext(ctx, s.SQL.HasMigrations).Scan(&there); err != nil || !there {
		return nil, err
	}
	return database.List(ctx, s.Pool, s.SQL.Applied, func(rows *sql.Rows) (Migration, error) {
		var m Migration
		var at int64
		err := rows.Scan(&m.Version, &m.Name, &m.Checksum, &at)
		m.AppliedAt = time.UnixMilli(at)
		return m, err
	})
}

// Migrate applies the missing migrations, each in its own transaction, and returns their names. Several processes may
// call Migrate at the same time. After an error, the returned migrations are applied, and the other migrations are not.
// Before it creates anything, Migrate checks that the tables can work in this database, and that the schema has no
// later major version; if not, the error wraps semel.ErrSchema. Migrate does not inspect existing tables: see Check. On
// PostgreSQL, a migration waits for the lock of a table for one second at a time, and fails after half a minute. An
// index that is missing or incomplete is built concurrently, so that it does not block writers.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	if s.db.SQLite != nil && s.db.File == nil {
		return nil, fmt.Errorf("sqlstore: the database is in memory and loses its data when the connection ends; open a file, or in tests use memstore: %w", semel.ErrUnsupported)
	}
	all, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.db.Faults(ctx, s.db.SQL.Unfit); err != nil {
		return nil, err
	}
	for _, m := range all {
		if !m.AppliedAt.IsZero() {
			continue
		}
		ran, err := migrate(ctx, s.db, m)
		for try := 1; err != nil && try < migrateTries && ctx.Err() == nil && s.db.Classify(err) == store.ClassContended; try++ {
			ran, err = migrate(ctx, s.db, m)
		}
		if err != nil {
			return applied, s.db.Blameless("migration "+m.String(), err)
		}
		if ran {
			applied = append(applied, m.String())
		}
	}
	if err := s.db.Index(ctx); err != nil {
		return applied, s.db.Blameless("building an index", err)
	}
	return applied, nil
}

// migrate first creates the table of migrations, outside of the transaction. The transaction of the migration therefore
// begins with a write, also if the table exists.
func migrate(ctx context.Context, s *database.DB, m Migration) (ran bool, err error) {
	if _, err := s.Pool.ExecContext(ctx, s.SQL.Migrations); err != nil {
		return false, err
	}
	e, err := s.Open(ctx, s.Dialect.Isolation)
	if err != nil {
		return false, err
	}
	if ran, err = migrateIn(ctx, s, e.InTx, m); err != nil {
		e.RollbackTx(ctx)
		return false, err
	}
	err = e.CommitTx(ctx)
	e.Release(err == nil)
	return ran && err == nil, err
}

func migrateIn(ctx context.Context, db *database.DB, tx *sql.Tx, m Migration) (ran bool, err error) {
	if ran, err = database.ChangedIn(ctx, tx, db.SQL.Migrated, m.Version, m.Name, m.Checksum); err != nil || !ran {
		return false, err
	}
	if db.Postgres != nil {
		if _, err := tx.ExecContext(ctx, tableWait); err != nil {
			return false, err
		}
	}
	for _, statement := range m.splitStatements() {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return false, err
		}
	}
	return true, nil
}

// splitStatements splits a migration into statements: after each line that ends with a semicolon and is followed
// by an empty line.
func (m Migration) splitStatements() []string {
	return strings.Split(strings.TrimSpace(m.SQL), ";\n\n")
}

// Print writes the SQL of all migrations, for teams that apply the SQL with another tool. The SQL also writes
// the records of the migrations.
func (s *Store) Print(w io.Writer) error {
	all, err := loadMigrations(s.db)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(w, "%s;\n", s.db.SQL.Migrations); err != nil {
		return err
	}
	for _, m := range all {
		record := s.db.SQL.Migrated
		for i, v := range []string{strconv.Itoa(m.Version), "'" + m.Name + "'", "'" + m.Checksum + "'"} {
			record = strings.Replace(record, s.db.Dialect.Bind+strconv.Itoa(i+1), v, 1)
		}
		if _, err := fmt.Fprintf(w, "\n-- %v\n%s\n%s;\n", m, m.SQL, record); err != nil {
			return err
		}
	}
	for _, b := range s.db.ExtraIndexes() {
		if _, err := fmt.Fprintf(w, "\n-- Only if this index is missing, and outside of a transaction:\n-- %s;\n", strings.ReplaceAll(b.Build, "\n", "\n-- ")); err != nil {
			return err
		}
	}
	return nil
}
