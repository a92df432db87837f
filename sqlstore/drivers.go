package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Statements are what a store in PostgreSQL sends: for drivers of another
// interface that work on the same tables. They belong to the schema of this
// release and change with it, which the revision tells.
func Statements(s *Store, _ sqlform.Revision12) *sqlform.Postgres { return s.postgres }

// DatedStatements are those of a store's table of days; nil if its markers lie in the table
// of all.
func DatedStatements(s *Store, _ sqlform.Revision12) *sqlform.Dated {
	if s.days == nil {
		return nil
	}
	return &s.days.sql
}

// Crypt is how a store encrypts what it keeps of messages.
func Crypt(s *Store) sqlform.Crypt { return s.crypt }

// DayGone reports whether an error of marks, from any driver, says that their day was
// dropped after the marks of what is kept were read: another try reads them anew.
func DayGone(s *Store, err error) bool { return s.noPartition(err) }

// Remedy says what to do about an error of a PostgreSQL server, from any
// driver; it is empty if there is nothing to say. own says that the statement
// was the store's: an error of another's gets no advice about Semel's tables.
func Remedy(err error, own bool) string {
	if remedy := postgresOwnRemedy(err); own && remedy != "" {
		return remedy
	}
	return postgresRemedies[sqlState(err)]
}

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
		return s.beside.Missing(err)
	}
	return nil
}
