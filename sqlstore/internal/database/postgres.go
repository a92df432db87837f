package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqlstate"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

// OpenPostgres opens a store for PostgreSQL with the statements in the given files.
func OpenPostgres(db *sql.DB, files fs.FS, o Options) (*DB, error) {
	if o.Schema == "" {
		o.Schema = "public"
	}
	if o.Prefix != strings.ToLower(o.Prefix) {
		return nil, fmt.Errorf("sqlstore: table prefix %q: use lower-case letters in PostgreSQL", o.Prefix)
	}
	if o.Isolation == sql.LevelDefault {
		o.Isolation = sql.LevelReadCommitted
	}
	s, err := open(db, postgresDialect(files), o)
	if err != nil {
		return nil, err
	}
	s.Guards, s.Level = true, o.Isolation
	return s, nil
}

func postgresDialect(files fs.FS) *Dialect {
	return &Dialect{
		Name: "postgres", Files: files, fill: postgresFill, Text: sqltext.Postgres(), Bind: "$", Now: "pg_catalog.clock_timestamp()", Moment: "pg_catalog.to_timestamp(?::bigint::float8 / 1000::float8)",
		Isolation: sql.LevelReadCommitted, handleOf: postgresHandle,
		classify:     postgresClass,
		isStoreFault: postgresExonerates,
		isOutdated:   postgresOutdated,
		Coded:        func(err error) bool { return SQLState(err) != "" },
		remedy:       func(err error) string { return postgresRemedies[SQLState(err)] },
		ownRemedy:    postgresOwnRemedy,
		RolledBack:   func(err error) bool { return sqlstate.RolledBack(SQLState(err)) },
		Ids:          []string{"text", "character varying", "bpchar", "uuid", "bytea", "bigint", "integer", "smallint"},
		Old:          postgresOld,
	}
}

func postgresFill(s *DB, texts map[string]string) error {
	s.Postgres = &sqlform.Postgres{}
	s.SQL = &s.Postgres.Statements
	return sqlform.Fill(s.Postgres, texts)
}

func postgresOld(c *adoption.Column) (value, last string) {
	if c.Kind == "bytea" {
		return "t." + c.Quoted, "$2::bytea"
	}
	return "pg_catalog.convert_to(t." + c.Quoted + "::text, 'UTF8')", "pg_catalog.convert_from($2::bytea, 'UTF8')::" + c.Kind + c.Collate
}

// Milliseconds formats a duration for a setting of PostgreSQL. The result is at least one millisecond, because zero
// would mean no limit. If d is not positive, the result is the formatted parameter zero.
func Milliseconds(d, zero time.Duration) string {
	if d <= 0 {
		d = zero
	}
	return strconv.FormatInt(max(1, d.Milliseconds()), 10) + "ms"
}

// SQLState returns the SQLSTATE of a server's error; empty for other errors.
func SQLState(err error) string {
	_, state := serverError(err)
	return state
}

// postgresOutdated reports whether a prepared statement is outdated because its table was changed. Unsupported
// features have the same SQLSTATE, so postgresOutdated also compares the name of the server's routine, which
// is never translated.
func postgresOutdated(err error) bool {
	return SQLState(err) == sqlstate.FeatureNotSupported && fieldOf(err, "Routine") == "RevalidateCachedQuery"
}

func postgresClass(err error) store.Class {
	if postgresOutdated(err) {
		return store.ClassContended // a new connection plans the statement again
	}
	if class := stateClass(SQLState(err)); class != 0 {
		return class
	}
	var network net.Error
	if errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) {
		return store.ClassDown
	}
	return 0
}

func stateClass(state string) store.Class {
	if len(state) != 5 {
		return 0
	}
	switch state {
	case sqlstate.SerializationFailure, sqlstate.Deadlock, sqlstate.LockNotAvailable, "40000":
		return store.ClassContended
	case sqlstate.FailedTransaction, sqlstate.NoTransaction: // the transaction failed earlier, or has ended
		return store.ClassAborted
	case "25006", "25P03", "25P04", sqlstate.InvalidStatementName, "3D000", "42P05", "57P01", "57P02", "57P03", "57P04", "57P05", sqlstate.CompletionUnknown, "XX001", "XX002":
		return store.ClassDown
	}
	switch state[:2] {
	case "08", "28", "53", "58", "F0":
		return store.ClassDown
	case "0A", "20", "21", "22", "23", "24", "25", "2B", "2D", "2F", "34", "38", "39", "3F", "40", "42", "44", "54", "P0":
		return store.ClassPermanent
	default: // for example 57014, a statement_timeout that the user has set
		return store.ClassRetry
	}
}

// stateExonerates reports whether the cause of an error with this code is outside of the transaction: a lock of another
// transaction, or a lack of resources of the server. The result is false for 53400 (a configuration limit), because the
// transaction itself can cause this error.
func stateExonerates(state string) bool {
	if len(state) != 5 {
		return false
	}
	switch state {
	case sqlstate.LockNotAvailable, "25006", "53000", "53100", "53200", "53300", "XX001", "XX002":
		return true
	}
	return state[:2] == "58"
}

// PostgresRefused reports whether PostgreSQL itself answered COMMIT with an error. After an error that PostgreSQL
// itself has raised at COMMIT, the transaction is rolled back, and the connection is still usable. PostgresRefused
// ignores the code of the error, because a deferred trigger can choose any code. PostgreSQL raises no ERROR after it
// has written the commit. An error of a pooler that lost its server has no name of a routine.
func PostgresRefused(err error) bool {
	return SQLState(err) != sqlstate.CompletionUnknown && fieldOf(err, "SeverityUnlocalized") == "ERROR" && fieldOf(err, "Routine") != ""
}

// postgresExonerates reports whether the cause of an error is outside of the transaction. If a function raises an
// error, the caller of the function counts as the cause, for every code.
func postgresExonerates(err error) bool {
	switch state := SQLState(err); state {
	case sqlstate.SerializationFailure, sqlstate.Deadlock:
		return concludes[fieldOf(err, "File")]
	default:
		return stateExonerates(state) && fieldOf(err, "Routine") != "exec_stmt_raise"
	}
}

// The source files of PostgreSQL that raise a serialization failure or a deadlock. Serialization failures and deadlocks
// happen only because of another transaction. If a function raises the same code, or if a server only implements
// PostgreSQL's protocol, the error names another file.
var concludes = map[string]bool{
	"deadlock.c": true, "predicate.c": true, "nodeModifyTable.c": true, "nodeLockRows.c": true, "trigger.c": true,
	"ri_triggers.c": true, "heapam.c": true, "heapam_handler.c": true, "execMain.c": true, "tableam.c": true, "postgres.c": true,
}

// For each error code, advice for an operator.
var postgresRemedies = map[string]string{
	"42P05": "behind a pooler in transaction mode use no named prepared statements; with pgx default_query_exec_mode=exec",
	"25006": "connect to the primary: target_session_attrs=read-write",
	"53100": "free space on the server's disk",
	"53300": "lower the size of the pools, or raise max_connections",
	"3D000": "the database in the connection string does not exist",
	"28P01": "the server rejects the password in the connection string",
	"28000": "the role does not exist, or pg_hba.conf rejects it or its address",
	"26000": "behind a pooler in transaction mode use no named prepared statements; with pgx default_query_exec_mode=exec",
	"57014": "it exceeded the consumer's timeout or the server's statement_timeout, or it was cancelled: make it faster, or raise the limit",
	"25P03": "the transaction was idle for too long: lower the handlers' timeout, or raise Idle of the transaction",
}

// postgresOwnRemedy returns advice for an error of the store's own statements. A row-level security policy
// that rejects a row has the code of a missing privilege. So postgresOwnRemedy also compares the name of the
// server's routine, which is never translated.
func postgresOwnRemedy(err error) string {
	if SQLState(err) == "42501" && fieldOf(err, "Routine") == "ExecWithCheckOptions" {
		return "row-level security blocks the role on Semel's tables: disable it there, or create a policy for the role for all commands using (true)"
	}
	return postgresOwnRemedies[SQLState(err)]
}

// For each error code, advice that is valid only for the store's own statements, because the same codes occur for other
// tables.
var postgresOwnRemedies = map[string]string{
	"42P01": "one of Semel's tables is missing: run semel migrate up, and semel migrate status for what it does not restore",
	"42703": "a column of one of Semel's tables is missing: run semel migrate up, and semel migrate status for what it does not restore",
	"42501": "grant the role select, insert, update and delete on Semel's tables and usage on their schema",
}

// handle has functions of a driver's connection that database/sql does not have. The functions of a handle need no
// round trip. A function that the driver does not have is nil.
type handle struct {
	// Status returns the last transaction status that the server sent.
	Status func() byte
	// Closed reports whether the connection is lost. Status returns the last status even if the connection is lost.
	Closed func() bool
	// closeNow closes the connection. Any goroutine may call closeNow, also during a statement and more than once.
	closeNow func()
	// The function close ends the connection. The driver must not return the connection to a pool of its own.
	close func(context.Context) error
}

// The transaction status while a transaction is usable, and without a transaction. See "Message Formats",
// ReadyForQuery: https://www.postgresql.org/docs/current/protocol-message-formats.html
const (
	InTransaction = 'T'
	NoTransaction = 'I'
)

// postgresHandle finds the functions of a driver's connection. In pgx's stdlib, the methods Conn and PgConn lead to the
// inner connections. postgresHandle searches the functions in each of these connections, with reflection, because this
// package imports no driver.
func postgresHandle(conn any) handle {
	var h handle
	for _, below := range []func(reflect.Value) reflect.Value{byConn, byPgConn, byNothing} {
		if c, ok := conn.(interface{ TxStatus() byte }); ok {
			h.Status = c.TxStatus
		}
		if c, ok := conn.(interface{ IsClosed() bool }); ok {
			h.Closed = c.IsClosed
		}
		if c, ok := conn.(interface{ Conn() net.Conn }); ok {
			if socket := c.Conn(); socket != nil {
				h.closeNow = func() { _ = socket.Close() }
			}
		}
		if c, ok := conn.(interface{ Close(context.Context) error }); ok && h.close == nil {
			h.close = c.Close
		}
		conn = result(conn, below)
	}
	return h
}

// The functions byConn and byPgConn return the methods that lead to the inner connection. Each method name is a
// constant: with a variable name, the linker would have to keep all methods of the program.
func byConn(v reflect.Value) reflect.Value { return v.MethodByName("Conn") }

func byPgConn(v reflect.Value) reflect.Value { return v.MethodByName("PgConn") }

func byNothing(reflect.Value) reflect.Value { return reflect.Value{} }

// result calls a method without arguments, and returns its result. The result is nil if the value has no such method.
func result(of any, method func(reflect.Value) reflect.Value) any {
	if of == nil {
		return nil
	}
	m := method(reflect.ValueOf(of))
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return nil
	}
	v := m.Call(nil)[0]
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return v.Interface()
}
