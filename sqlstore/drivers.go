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

// Statements are what a store in PostgreSQL sends: for drivers of another
// interface that work on the same tables. They belong to the schema of this
// release and change with it, which the revision tells.
func Statements(s *Store, _ sqlform.Revision12) *sqlform.Postgres { return s.db.Postgres }

// DatedStatements are those of a store's table of days; nil if its markers lie in the table
// of all.
func DatedStatements(s *Store, _ sqlform.Revision12) *sqlform.Dated {
	if s.db.Days == nil {
		return nil
	}
	return &s.db.Days.SQL
}

// Crypt is how a store encrypts what it keeps of messages.
func Crypt(s *Store) sqlform.Crypt { return s.db.Crypt }

// DayGone reports whether an error of marks, from any driver, says that their day was
// dropped after the marks of what is kept were read: another try reads them anew.
func DayGone(s *Store, err error) bool { return s.db.NoPartition(err) }

// Unwritten says of an error of marks, from any driver, what the tables tell of
// its cause: a trigger or a rule that keeps markers from being written does so at
// every try. It is nil if they tell nothing.
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

// Remedy says what to do about an error of a PostgreSQL server, from any
// driver; it is empty if there is nothing to say. own says that the statement
// was the store's: an error of another's gets no advice about Semel's tables.
func Remedy(err error, own bool) string { return database.Remedy(err, own) }

// Judged is the verdict on a mark that met this marker, or none, in a table of days; the mark
// has the key under which its marker stands.
func Judged(c sqlform.Crypt, m *sqlform.Mark, there sqlform.Marker) (store.Verdict, error) {
	return marking.Judged(c, m, there)
}

// AllTaken is an error if not all streams were found that were just written.
func AllTaken(taken, all int) error { return ordering.AllTaken(taken, all) }

// Violates reports whether err says that a unique constraint refused a row, and
// that it was this one. A handler whose effect a business key guards returns
// semel.Duplicate then.
//
// In PostgreSQL a constraint is named as the database names it:
// "invoices_number_key". Exclusion constraints count, too. The name is the
// field ConstraintName (pgx) or Constraint (pq) of the driver's error.
//
// In SQLite it is named by its columns as the table and the constraint name
// them, "invoices.number" or "lines.invoice, lines.position", or "index 'name'"
// for an index on an expression. The kind of error is told by its code; the
// code does not say which constraint, so that is read after the colon of the
// text.
func Violates(err error, constraint string) bool { return database.Violates(err, constraint) }
