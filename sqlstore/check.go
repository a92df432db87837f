package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
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
			return fmt.Errorf("sqlstore: the schema lacks migration %v (tables %s*): run semel migrate up: %w", m, s.prefix, semel.ErrSchema)
		}
	}
	if err := s.lint(ctx); err != nil {
		return err
	}
	if err := s.beside.Check(ctx); err != nil {
		which := "the adopted table"
		if s.days != nil {
			which = "the table of days"
		}
		return fmt.Errorf("sqlstore: %s: %w", which, s.hint(err))
	}
	return nil
}

// lint reports what the schema has lost of what once-only effects stand on.
// Rows are looked at where the catalogue is not enough; a table that is missing
// was named before they could be.
func (s *Store) lint(ctx context.Context) error {
	found := errors.Join(s.faults(ctx, s.sql.Unfit), s.faults(ctx, s.sql.Lint))
	if err := s.faults(ctx, s.sql.LintRows); err != nil && (found == nil || errors.Is(err, semel.ErrSchema)) {
		found = errors.Join(found, err)
	}
	return found
}

// OpenSchemas says of each schema of the role's search_path in which other roles may create
// objects who may, and what takes that right away. Superusers and the schema's owner do not
// count. On SQLite there are none.
func (s *Store) OpenSchemas(ctx context.Context) (warnings []string, err error) {
	if s.postgres == nil {
		return nil, nil
	}
	err = eachRow(ctx, s.db, s.postgres.OpenSchemas, func(rows *sql.Rows) error {
		var schema, who string
		err := rows.Scan(&schema, &who)
		warnings = append(warnings, fmt.Sprintf("%s may create objects in schema %q of the search_path, so that statements that do not name a schema may meet these: revoke create on schema %s from %s",
			who, schema, quoted(schema), who))
		return err
	}, nil)
	if err != nil {
		return nil, s.blameless("the schemas of the search_path", err)
	}
	return warnings, nil
}

// quoted is the name of a schema or role as it is written in SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// faults are what the statement finds, each with what to do. They
// wrap semel.ErrSchema.
func (s *Store) faults(ctx context.Context, statement string) error {
	rows, err := s.db.QueryContext(ctx, statement)
	if err != nil {
		return s.blameless("check", err)
	}
	defer rows.Close()
	var faults []error
	for rows.Next() {
		var what, remedy string
		if err := rows.Scan(&what, &remedy); err != nil {
			return s.blameless("check", err)
		}
		faults = append(faults, fmt.Errorf("sqlstore: %s: %w: %s", what, semel.ErrSchema, remedy))
	}
	if err := rows.Err(); err != nil {
		return s.blameless("check", err)
	}
	return errors.Join(faults...)
}
