package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/marking"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// Statements returns the statements of a store in PostgreSQL. Stores for other drivers use these statements to work on
// the same tables. The statements change with the schema of the release; the type Revision12 stands for this schema.
func Statements(s *Store, _ sqlform.Revision12) *sqlform.Postgres { return s.db.Postgres }

// DatedStatements returns the statements for the table with daily partitions that has the markers of a store. The
// result is nil if the markers are in the table that all consumers share.
func DatedStatements(s *Store, _ sqlform.Revision12) *sqlform.Dated {
	if s.db.Days == nil {
		return nil
	}
	return &s.db.Days.SQL
}

// Crypt returns the encryption of a store.
func Crypt(s *Store) sqlform.Crypt { return s.db.Crypt }

// DayGone reports whether a marker could not be written because its daily partition was dropped after the list
// of partitions was read. The error may come from any driver. A retry reads the list again.
func DayGone(s *Store, err error) bool { return s.db.NoPartition(err) }

// Unwritten explains an error of writing markers, from any driver: it searches a fault of the schema, such as a trigger
// or a rule that prevents the write. Unwritten returns nil if the schema has no such fault.
func Unwritten(ctx context.Context, s *Store, err error) error {
	missing := errors.Is(err, sqlform.ErrMissing)
	if !missing && s.Classify(err) != store.ClassPermanent {
		return nil
	}
	if fault := s.Check(ctx); errors.Is(fault, semel.ErrSchema) {
		return fmt.Errorf("%w: %w", err, fault)
	}
	if missing {
		return s.db.Foreign.Missing(err)
	}
	return nil
}

// Remedy returns what an operator must do about an error of a PostgreSQL server, from any driver; empty if there is no
// advice. The parameter own is true for the store's own statements; for other statements, the advice does not mention
// Semel's tables.
func Remedy(err error, own bool) string { return database.Remedy(err, own) }

// Judged returns the store's verdict (new, duplicate, conflict, …) for a message whose marker is in a table with daily
// partitions. The parameter there is the existing marker of the same identity, or the zero value if no marker exists.
// Judged sets the key of m to the key of the existing marker.
func Judged(c sqlform.Crypt, m *sqlform.Mark, there sqlform.Marker) (store.Verdict, error) {
	return marking.Judged(c, m, there)
}

// AllTaken returns an error unless the two parameters are equal. The parameter all is the number of streams that a
// transaction has just inserted, or that existed already. The parameter taken is the number of streams that the
// transaction found afterwards.
func AllTaken(taken, all int) error { return ordering.AllTaken(taken, all) }

// Violates reports whether err means that a given unique constraint rejected a row. If a business key protects a
// handler's effect, the handler returns semel.Duplicate if Violates returns true for the key's constraint.
//
// In PostgreSQL, constraint is the name of the constraint, such as "invoices_number_key". Exclusion constraints count
// as unique constraints. The name is read from the field ConstraintName (pgx) or Constraint (pq) of the driver's error.
//
// In SQLite, constraint names the columns as the table does: "invoices.number" or "lines.invoice, lines.position". For
// an index on an expression, constraint is "index 'name'". Violates reads the kind of the constraint from the code of
// the error, and the columns from the text after the colon.
func Violates(err error, constraint string) bool { return database.Violates(err, constraint) }
