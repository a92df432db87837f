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
	"github.com/semel-go/semel/store"
)

// Remedy says what to do about an error of a PostgreSQL server, from any
// driver; it is empty if there is nothing to say. own says that the statement
// was the store's: an error of another's gets no advice about Semel's tables.
func Remedy(err error, own bool) string {
	if remedy := postgresOwnRemedy(err); own && remedy != "" {
		return remedy
	}
	return postgresRemedies[SQLState(err)]
}

// ErrDry ends the transaction of a call that only counts.
var ErrDry = errors.New("nothing was to be removed")

// ErrElsewhere: another process reaps for the consumer.
var ErrElsewhere = errors.New("another process reaps")

// readable is err, or where something of it cannot be read, an error that says
// so: whoever looks for a type in it would meet what panics. What the store has
// decided about it stays.
func readable(err error) error {
	return legible.Error(err, func(decided *Error, r error) error { return &Error{decided.Doing, decided.Class, r} })
}

// stateError is an error of a server, as every driver makes it.
type stateError interface {
	error
	SQLState() string
}

// serverError is the error of a server in err with its code.
func serverError(err error) (by stateError, state string) {
	by, state, _ = findError(err, stateError.SQLState)
	return by, state
}

// findError finds an error of this type in err, and what it answers. One that cannot
// answer, such as a nil of a driver's type that somebody returned as an error, is
// nothing that a database said.
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

// Error is a failure of the store that no message is to blame for.
type Error struct {
	Doing string
	Class store.Class
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("sqlstore: %s: %v", e.Doing, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Blameless says what an error of the store's own statements means: waiting
// may mend it or a person must, but it is no message's attempt.
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

// Advised adds to an error of the store's own statements what to do about its
// tables. A fault of the schema that was found says so itself.
func (s *DB) Advised(err error) error {
	if remedy := s.Dialect.ownRemedy(err); remedy != "" && s.MarksAlone() && !errors.Is(err, semel.ErrSchema) {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// Hint adds to an error of the driver what to do about it, whoever's statement
// it is of.
func (s *DB) Hint(err error) error {
	if remedy := s.Dialect.remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// UnknownError is an error of a COMMIT that may have happened.
type UnknownError struct{ err error }

func (e *UnknownError) Error() string {
	return "the answer to its COMMIT was lost, so it may have been committed: " + e.err.Error()
}

func (e *UnknownError) Unwrap() error { return e.err }

// IsOver reports whether the transaction was ended by someone else.
func IsOver(err error) bool { return errors.Is(err, sql.ErrTxDone) }

// Classify implements store.TxStore. It goes by the database's codes, never by
// the text of an error. Of an error of PostgreSQL that a prepared statement is
// outdated, because its table was changed, it takes note: no batch that is open
// gives its connection back, so that the next run prepares it anew.
func (s *DB) Classify(err error) store.Class {
	err = readable(err)
	if s.Dialect.outdated != nil && s.Dialect.outdated(err) {
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

// IsStoreFault implements store.TxStore: for lock time-outs, full disks, lack
// of memory and files that cannot be read or written.
func (s *DB) IsStoreFault(err error) bool { return s.Dialect.exonerates(readable(err)) }

// Violates reports whether err says that this unique constraint refused a row; see sqlstore.Violates.
func Violates(err error, constraint string) bool {
	err = readable(err)
	switch SQLState(err) {
	case stateUnique, stateExclusion:
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

// constraintOf is the constraint that an error names.
func constraintOf(err error) string { return fieldOf(err, "ConstraintName", "Constraint") }

// fieldOf reads the first of these fields that a server's error has, of a type
// that only the driver has a name for. A type that wraps a nil of the driver's
// has none.
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

// fieldNamed is a field of a structure or of what it embeds, the zero Value if
// there is none.
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

// columnsOf is what stands after the last colon, without the code that some
// drivers append, in one spelling.
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
