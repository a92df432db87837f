package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// Check reports whether the schema fits this release and still has everything that exactly-once processing needs: keys,
// the guard's foreign key, tables that a crash does not empty, and no trigger or rule that changes written data. The
// error names every fault and its remedy, and wraps semel.ErrSchema. Check changes nothing. Check accepts migrations of
// newer releases within a major version of the schema, because such migrations only add to the schema. Status lists the
// migrations of newer releases.
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

// lint reports the missing parts of the schema that exactly-once processing needs. lint reads rows where the
// catalog does not have enough information. If a table is missing, an earlier check has named that table.
func lint(ctx context.Context, db *database.DB) error {
	found := errors.Join(db.Faults(ctx, db.SQL.Unfit), db.Faults(ctx, db.SQL.Lint))
	if err := db.Faults(ctx, db.SQL.LintRows); err != nil && (found == nil || errors.Is(err, semel.ErrSchema)) {
		found = errors.Join(found, err)
	}
	return found
}

// OpenSchemas returns a warning for each schema in the role's search_path in which other roles may create
// objects. The warning names these roles and the statement that revokes the privilege. Superusers and the
// owner of the schema are ignored. For SQLite the result is empty.
func (s *Store) OpenSchemas(ctx context.Context) (warnings []string, err error) {
	if s.db.Postgres == nil {
		return nil, nil
	}
	warnings, err = database.List(ctx, s.db.Pool, s.db.Postgres.OpenSchemas, func(rows *sql.Rows) (string, error) {
		var schema, who string
		err := rows.Scan(&schema, &who)
		return fmt.Sprintf("%s may create objects in schema %q of the search_path, so statements without a schema name may use such objects: revoke create on schema %s from %s",
			who, schema, sqltext.Quoted(schema), who), err
	})
	return warnings, s.db.Answer("the schemas of the search_path", err)
}

// right lists the privileges that a role needs on an object of Semel's schema, and the privileges that the role lacks.
type right struct {
	object, known string // object: the name for GRANT, empty if the object is missing; known: the name without schema and prefix
	needs, lacks  string
	role          string
}

// LackingRights returns a warning for each object of Semel's schema on which the role lacks a privilege that
// consumers or operators need. The warning contains the GRANT statement. For SQLite the result is empty.
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

// Grants returns the GRANT statements for a role that runs consumers and changes their messages with operator commands.
// The role's present privileges make no difference. The statements cover the schema, Semel's tables, tables with daily
// partitions, and the user's own tables that the parameter adopted names (see Adopt). The statements do not cover other
// tables of the user. Only the owner of the tables can call Migrate and create daily partitions; no GRANT replaces
// this. An empty role means the role of the connection. The error wraps semel.ErrUnsupported on SQLite, which has no
// roles, and semel.ErrSchema if a table of Semel is missing.
func (s *Store) Grants(ctx context.Context, role string, adopted ...string) (grants []string, err error) {
	if s.db.Postgres == nil {
		return nil, fmt.Errorf("sqlstore: SQLite has no roles: every process that can write the file can do everything: %w", semel.ErrUnsupported)
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
	return fmt.Sprintf("grant %s on %s to %s", privileges, r.object, sqltext.Quoted(r.role))
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
