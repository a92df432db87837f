package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// Check reports whether the schema is one that this release works with and has kept
// what once-only effects stand on: keys, the guard's foreign key, tables that a
// crash does not empty, and nothing that changes what is written. Its error
// names every fault with what to do, and wraps semel.ErrSchema. It changes
// nothing. Migrations that only a newer release knows are no fault within a major
// version of the schema: there they only add. Status lists them.
func (s *Store) Check(ctx context.Context) error {
	all, err := s.Status(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.AppliedAt.IsZero() {
			return fmt.Errorf("sqlstore: the schema lacks migration %v (tables %s*): run semel migrate up: %w", m, s.db.Prefix, semel.ErrSchema)
		}
	}
	if err := lint(ctx, s.db); err != nil {
		return err
	}
	if err := s.db.Foreign.Check(ctx); err != nil {
		which := "the adopted table"
		if s.db.Days != nil {
			which = "the table of days"
		}
		return fmt.Errorf("sqlstore: %s: %w", which, s.db.Hint(err))
	}
	return nil
}

// lint reports what the schema has lost of what once-only effects stand on.
// Rows are looked at where the catalogue is not enough; a table that is missing
// was named before they could be.
func lint(ctx context.Context, db *database.DB) error {
	found := errors.Join(db.Faults(ctx, db.SQL.Unfit), db.Faults(ctx, db.SQL.Lint))
	if err := db.Faults(ctx, db.SQL.LintRows); err != nil && (found == nil || errors.Is(err, semel.ErrSchema)) {
		found = errors.Join(found, err)
	}
	return found
}

// OpenSchemas says of each schema of the role's search_path in which other roles may create
// objects who may, and what takes that right away. Superusers and the schema's owner do not
// count. On SQLite there are none.
func (s *Store) OpenSchemas(ctx context.Context) (warnings []string, err error) {
	if s.db.Postgres == nil {
		return nil, nil
	}
	warnings, err = database.List(ctx, s.db.Pool, s.db.Postgres.OpenSchemas, func(rows *sql.Rows) (string, error) {
		var schema, who string
		err := rows.Scan(&schema, &who)
		return fmt.Sprintf("%s may create objects in schema %q of the search_path, so that statements that do not name a schema may meet these: revoke create on schema %s from %s",
			who, schema, quoted(schema), who), err
	})
	return warnings, s.db.Answer("the schemas of the search_path", err)
}

// quoted is the name of a schema or role as it is written in SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// right is what a role needs in one object of Semel's schema.
type right struct {
	object, known string // as GRANT names it, empty if it is missing; and without schema and prefix
	needs, lacks  string
	role          string
}

// LackingRights says of each object of Semel's schema in which the role lacks a right that
// consumers or operators need, which that is, and the GRANT that gives it. On SQLite there are none.
func (s *Store) LackingRights(ctx context.Context) (warnings []string, err error) {
	if s.db.Postgres == nil {
		return nil, nil
	}
	all, err := rights(ctx, s.db, "")
	for _, r := range all {
		if r.object != "" && r.lacks != "" {
			warnings = append(warnings, fmt.Sprintf("the role %s lacks %s on %s, which consumers or commands may need: %s", r.role, r.lacks, r.object, r.grant(r.lacks)))
		}
	}
	return warnings, err
}

// Grants returns the GRANT statements for a role that runs consumers and acts on their messages,
// whatever the role has already: in the schema, in Semel's tables, in the tables of days of consumers,
// and in the adopted tables that are named. An empty role is that of the connection. The statements do
// not cover what handlers do in tables of the user's, nor Migrate and the making of days, which are
// for the owner of the tables. The error wraps semel.ErrUnsupported on SQLite, which has no roles, and
// semel.ErrSchema if a table of Semel's is missing.
func (s *Store) Grants(ctx context.Context, role string, adopted ...string) (grants []string, err error) {
	if s.db.Postgres == nil {
		return nil, fmt.Errorf("sqlstore: SQLite has no roles: whoever may write the file may do everything: %w", semel.ErrUnsupported)
	}
	all, err := rights(ctx, s.db, role)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.object == "" {
			return nil, fmt.Errorf("sqlstore: %s%s is missing: run semel migrate up first: %w", s.db.Prefix, r.known, semel.ErrSchema)
		}
		grants, role = append(grants, r.grant(r.needs)), r.role
	}
	for _, table := range adopted {
		grants = append(grants, right{object: table, role: role}.grant("select, insert, delete"))
	}
	return grants, nil
}

func (r right) grant(privileges string) string {
	return fmt.Sprintf("grant %s on %s to %s", privileges, r.object, quoted(r.role))
}

func rights(ctx context.Context, db *database.DB, role string) (all []right, err error) {
	all, err = database.List(ctx, db.Pool, db.Postgres.Rights, func(rows *sql.Rows) (right, error) {
		var r right
		var object sql.NullString
		err := rows.Scan(&object, &r.known, &r.needs, &r.lacks, &r.role)
		r.object = object.String
		return r, err
	}, role)
	return all, db.Answer("the rights of the role", err)
}
