package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-go/semel"
)

// right is what a role needs in one object of Semel's schema.
type right struct {
	object, known string // as GRANT names it, empty if it is missing; and without schema and prefix
	needs, lacks  string
	role          string
}

// LackingRights says of each object of Semel's schema in which the role lacks a right that
// consumers or operators need, which that is, and the GRANT that gives it. On SQLite there are none.
func (s *Store) LackingRights(ctx context.Context) (warnings []string, err error) {
	if s.postgres == nil {
		return nil, nil
	}
	all, err := s.rights(ctx, "")
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
	if s.postgres == nil {
		return nil, fmt.Errorf("sqlstore: SQLite has no roles: whoever may write the file may do everything: %w", semel.ErrUnsupported)
	}
	all, err := s.rights(ctx, role)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.object == "" {
			return nil, fmt.Errorf("sqlstore: %s%s is missing: run semel migrate up first: %w", s.prefix, r.known, semel.ErrSchema)
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

func (s *Store) rights(ctx context.Context, role string) (all []right, err error) {
	err = eachRow(ctx, s.db, s.postgres.Rights, func(rows *sql.Rows) error {
		var r right
		var object sql.NullString
		err := rows.Scan(&object, &r.known, &r.needs, &r.lacks, &r.role)
		r.object = object.String
		all = append(all, r)
		return err
	}, []any{role})
	if err != nil {
		return nil, s.blameless("the rights of the role", err)
	}
	return all, nil
}
