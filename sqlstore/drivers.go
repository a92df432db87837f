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

// Statements returns the statements of a store in PostgreSQL, for drivers with another
// interface that work on the same tables. The statements change with the schema of the
// release, which the revision identifies.
func Statements(s *Store, _ sqlform.Revision12) *sqlform.Postgres { return s.db.Postgres }

// DatedStatements returns the statements for the table with daily partitions in which a store
// keeps its markers; nil if the markers are in the common table.
func DatedStatements(s *Store, _ sqlform.Revision12) *sqlform.Dated {
	if s.db.Days == nil {
		return nil
	}
	return &s.db.Days.SQL
}

// Crypt returns the encryption of a store.
func Crypt(s *Store) sqlform.Crypt { return s.db.Crypt }

// DayGone reports whether an error of marks, from any driver, means that the daily partition of
// a mark was dropped after the list of partitions was read. A retry reads the list again.
func DayGone(s *Store, err error) bool { return s.db.NoPartition(err) }

// Unwritten adds to an error of marks, from any driver, the fault of the schema that explains
// it, such as a trigger or a rule that prevents markers from being written. Unwritten returns
// nil if the schema shows no cause.
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

// Remedy returns what to do about an error of a PostgreSQL server, from any driver; empty if
// there is no advice. own means that the statement was the store's; other statements get no
// advice about Semel's tables.
func Remedy(err error, own bool) string { return database.Remedy(err, own) }

// Judged returns the verdict for a mark in a table with daily partitions. there is the marker of
// the mark's identity, or the zero value if there is no marker. Judged sets the key of the mark to
// the key under which the marker is stored.
func Judged(c sqlform.Crypt, m *sqlform.Mark, there sqlform.Marker) (store.Verdict, error) {
	return marking.Judged(c, m, there)
}

// AllTaken returns an error if some of the streams that were just inserted are missing.
func AllTaken(taken, all int) error { return ordering.AllTaken(taken, all) }

// Violates reports whether err means that this unique constraint rejected a row. A handler
// whose effect is protected by a business key then returns semel.Duplicate.
//
// In PostgreSQL, use the name of the constraint, such as "invoices_number_key". Exclusion
// constraints count, too. The name is read from the field ConstraintName (pgx) or Constraint
// (pq) of the driver's error.
//
// In SQLite, use the columns as the table and the constraint name them: "invoices.number" or
// "lines.invoice, lines.position"; or "index 'name'" for an index on an expression. The code
// of the error shows its kind, and the constraint is read from the text after the colon.
func Violates(err error, constraint string) bool { return database.Violates(err, constraint) }
