package pgxstore

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore"
)

// storeError is an error whose meaning the store knows.
type storeError struct {
	doing string
	class semel.Class
	err   error
}

func (e *storeError) Error() string { return fmt.Sprintf("pgxstore: %s: %v", e.doing, e.err) }
func (e *storeError) Unwrap() error { return e.err }

// classOfArguments: an argument that can't be sent never can.
const classOfArguments = semel.ClassPermanent

// PostgreSQL's codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	codeNotSupported = "0A000"
	codeNoStatement  = "26000"
	codeUnknown      = "40003"
	codeCanceled     = "57014"
	codeUnmet        = "SM001" // raised by {prefix}expect
)

// code is the server's code of an error; empty if it is none of the server's.
func code(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}

// Classify implements semel.TxStore. It goes by the server's codes, never by
// the text of an error.
func (s *Store) Classify(err error) semel.Class {
	var own *storeError
	var server *pgconn.PgError
	var dialing *pgconn.ConnectError
	switch {
	case errors.As(err, &own):
		return own.class
	case errors.As(err, &dialing):
		return semel.ClassDown
	case errors.Is(err, pgx.ErrTxClosed), errors.Is(err, pgx.ErrTxCommitRollback):
		return semel.ClassAborted
	case !errors.As(err, &server):
		return s.classify(err)
	case server.Code == codeUnmet:
		return semel.ClassPermanent
	case outdated(err):
		return semel.ClassContended // the next try prepares it anew
	}
	return s.classify(err)
}

// outdated reports whether the server no longer takes a prepared statement:
// somebody deallocated it, or its table was changed.
func outdated(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return false
	}
	return server.Code == codeNoStatement || server.Code == codeNotSupported && server.Routine == "RevalidateCachedQuery"
}

// definite reports whether an answer to COMMIT, or to a statement sent with it,
// proves that nothing was committed: an error of the server does. A server that
// goes, a broken one, and a pooler that lost its server answer with an error,
// too, and do not know.
func definite(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) || len(server.Code) != 5 {
		return errors.Is(err, pgx.ErrTxCommitRollback)
	}
	switch server.Code[:2] {
	case "08", "58", "XX", "F0":
		return false
	case "57":
		return server.Code == codeCanceled
	}
	return server.Code != codeUnknown
}

// blameless says what an error of the store's own statements means: waiting
// may mend it or a person must, but it is no message's attempt.
func (s *Store) blameless(doing string, err error) error {
	class := s.Classify(err)
	if class != semel.ClassContended {
		class = semel.ClassDown
	}
	return &storeError{doing, class, hint(err)}
}

// hint adds to an error of the server what to do about it.
func hint(err error) error {
	if remedy := sqlstore.Remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}
