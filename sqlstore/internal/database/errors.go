package database

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/sqlstate"
	"github.com/semel-go/semel/store"
)

// Remedy returns advice for an operator about an error of a PostgreSQL server, from any driver; empty if there is no
// advice. The parameter own is true for the store's own statements; for other statements, the advice does not mention
// Semel's tables.
func Remedy(err error, own bool) string {
	if remedy := postgresOwnRemedy(err); own && remedy != "" {
		return remedy
	}
	return postgresRemedies[SQLState(err)]
}

// ErrDry rolls back the transaction of a call that only counts rows.
var ErrDry = errors.New("nothing was to be removed")

// ErrElsewhere means that another process is removing old data of the consumer.
var ErrElsewhere = errors.New("another process reaps")

// safeError returns err if its methods can be called safely, as errors.As does. If a method of err panics,
// safeError returns a new error with a description. An *Error in err keeps its class.
func safeError(err error) error {
	return legible.Error(err, func(decided *Error, r error) error { return &Error{decided.Doing, decided.Class, r} })
}

// stateError is an error of a server; the errors of all drivers have this method.
type stateError interface {
	error
	SQLState() string
}

// serverError finds the server's error in err, and returns it with its code.
func serverError(err error) (by stateError, state string) {
	by, state, _ = findError(err, stateError.SQLState)
	return by, state
}

// findError finds an error of type E in err, and returns this error with the result that the function ask returns for
// it. If a method of an error panics, for example because the error is a nil pointer of a driver's type, findError
// ignores that error.
func findError[E error, V any](err error, ask func(E) V) (by E, answer V, ok bool) {
	var none E
	var nothing V
	defer func() {
		if recover() != nil {
			by, answer, ok = none, nothing, false
		}
	}()
	if ok = errors.As(err, &by); ok {
		answer = ask(by)
	}
	return by, answer, ok
}

// Error is a failure of the store. An Error does not count as an attempt of any message.
type Error struct {
	Doing string
	Class store.Class
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("sqlstore: %s: %v", e.Doing, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Blameless converts an error of the store's own statements to an *Error, so that the error does not count as an
// attempt of a message. The cause of an error of the store's own statements ends by itself after a while, or an
// operator can fix it.
func (s *DB) Blameless(doing string, err error) error {
	class := s.Classify(err)
	switch {
	case s.NoPartition(err):
		class = store.ClassContended
	case class != store.ClassContended:
		class = store.ClassDown
	}
	return &Error{doing, class, s.Hint(s.Advised(err))}
}

// Advised adds advice about Semel's tables to an error of the store's own statements. Advised adds no advice to an
// error that wraps semel.ErrSchema, because such an error already contains a remedy.
func (s *DB) Advised(err error) error {
	if remedy := s.Dialect.ownRemedy(err); remedy != "" && s.MarksAlone() && !errors.Is(err, semel.ErrSchema) {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// Hint adds advice to an error of the driver. The statement may be any statement.
func (s *DB) Hint(err error) error {
	if remedy := s.Dialect.remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// UnknownError is an error of a COMMIT that may have succeeded.
type UnknownError struct{ err error }

func (e *UnknownError) Error() string {
	return "the answer to its COMMIT was lost, so it may have been committed: " + e.err.Error()
}

func (e *UnknownError) Unwrap() error { return e.err }

// IsOver reports whether an error means that the transaction had already ended.
func IsOver(err error) bool { return errors.Is(err, sql.ErrTxDone) }

// Classify implements store.TxStore. Classify uses the codes of the database, never the text of an error. After a
// change of a table, PostgreSQL reports that a prepared statement is outdated. Classify counts errors of outdated
// statements. After an error of an outdated statement, the connections of open batches are closed, so that the next
// attempt prepares the statement again.
func (s *DB) Classify(err error) store.Class {
	err = safeError(err)
	if s.Dialect.isOutdated != nil && s.Dialect.isOutdated(err) {
		s.outdated.Add(1)
	}
	var own *Error
	switch {
	case errors.As(err, &own):
		return own.Class
	case errors.Is(err, sql.ErrTxDone):
		return store.ClassAborted
	}
	class := s.Dialect.classify(err)
	if class == 0 && lostConnection(err) {
		class = store.ClassDown
	}
	if class == store.ClassDown {
		s.forgetScopes()
	}
	return cmp.Or(class, store.ClassRetry)
}

// IsStoreFault implements store.TxStore. IsStoreFault returns true for lock timeouts, full disks, lack of memory, and
// files that cannot be read or written.
func (s *DB) IsStoreFault(err error) bool { return s.Dialect.isStoreFault(safeError(err)) }

// Violates reports whether err means that a given unique constraint rejected a row; see sqlstore.Violates.
func Violates(err error, constraint string) bool {
	err = safeError(err)
	switch SQLState(err) {
	case sqlstate.UniqueViolation, sqlstate.ExclusionViolation:
		return constraint != "" && constraintOf(err) == constraint
	}
	code, ok := methodCode(err)
	if !ok {
		return false
	}
	switch code {
	case sqliteConstraintUnique, sqliteConstraintPrimaryKey, sqliteConstraintRowID:
		return columnsOf(err.Error()) == columnsOf(": "+constraint)
	default:
		return false
	}
}

func constraintOf(err error) string { return fieldOf(err, "ConstraintName", "Constraint") }

// fieldOf returns the first of the named fields that the server's error has. fieldOf uses reflection because the types
// belong to the drivers. The result is empty if the error wraps a nil pointer of the driver's type.
func fieldOf(err error, names ...string) string {
	by, _ := serverError(err)
	v := reflect.Indirect(reflect.ValueOf(by))
	if v.Kind() != reflect.Struct {
		return ""
	}
	for _, name := range names {
		if f := fieldNamed(v, name); f.Kind() == reflect.String {
			return f.String()
		}
	}
	return ""
}

// fieldNamed returns a field of a struct or of an embedded struct. The result is the zero Value if there is no
// such field.
func fieldNamed(v reflect.Value, name string) reflect.Value {
	field, ok := v.Type().FieldByName(name)
	if !ok {
		return reflect.Value{}
	}
	f, err := v.FieldByIndexErr(field.Index)
	if err != nil {
		return reflect.Value{}
	}
	return f
}

// columnsOf returns the list of columns after the last colon, in a uniform spelling. If the driver has appended a code
// to the list, columnsOf removes the code.
func columnsOf(text string) string {
	columns := text[strings.LastIndex(text, ": ")+1:]
	if at := strings.LastIndex(columns, " ("); at > 0 {
		columns = columns[:at]
	}
	parts := strings.Split(strings.TrimPrefix(columns, ":"), ",")
	for i, p := range parts {
		parts[i] = strings.ToLower(strings.TrimSpace(p))
	}
	return strings.Join(parts, ",")
}
