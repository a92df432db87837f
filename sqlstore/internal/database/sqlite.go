package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"time"

	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

// OpenSQLite opens a store for SQLite with the statements in the given files.
func OpenSQLite(db *sql.DB, files fs.FS, o Options) (*DB, error) {
	if o.Code == nil {
		o.Code = methodCode
	}
	o.Schema = ""
	s, err := open(db, sqliteDialect(files, o.Code), o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: opening the database: %w", err)
	}
	defer conn.Close()
	if err := conn.QueryRowContext(ctx, s.SQLite.ForeignKeys).Scan(&s.Guards); err != nil {
		return nil, fmt.Errorf("sqlstore: reading pragma foreign_keys: %w", err)
	}
	s.Alone = !s.Guards || !canHookCommits(conn)
	s.File, err = openedFileOf(ctx, conn, s.SQLite.File)
	return s, err
}

func sqliteDialect(files fs.FS, code func(error) (int, bool)) *Dialect {
	return &Dialect{
		Name: "sqlite", Files: files, fill: sqliteFill, Writers: 1, Lengths: []int{500, 100, 20, 4, 1}, Text: sqltext.SQLite(), Bind: "?", Moment: "?", Now: "cast(unixepoch('subsec') * 1000 as integer)", commitHook: true,
		Believes: true,
		Coded:    func(err error) bool { _, ok := code(err); return ok },
		classify: func(err error) store.Class {
			if n, ok := code(err); ok {
				return sqliteClass(n)
			}
			return 0
		},
		isStoreFault: func(err error) bool {
			n, ok := code(err)
			return ok && sqliteExonerates(n)
		},
		ownRemedy: func(err error) string {
			if n, _ := code(err); n&0xff == sqliteError {
				return "if a table or column of Semel's is missing, run semel migrate up, and semel migrate status for what it does not restore"
			}
			return ""
		},
		remedy: func(err error) string {
			n, _ := code(err)
			return sqliteRemedies[n&0xff]
		},
		RolledBack: func(err error) bool {
			n, ok := code(err)
			return ok && sqliteRolledBack(n)
		},
		Old: func(c *adoption.Column) (value, last string) {
			return "cast(t." + c.Quoted + " as blob)", "case ?3 when 'integer' then cast(?2 as integer) when 'text' then cast(?2 as text) else ?2 end"
		},
	}
}

func sqliteFill(s *DB, texts map[string]string) error {
	s.SQLite = &sqlform.SQLite{}
	s.SQL = &s.SQLite.Statements
	return sqlform.Fill(s.SQLite, texts)
}

func methodCode(err error) (int, bool) {
	_, code, ok := findError(err, numbering.Code)
	return code, ok
}

// numbering is an error of SQLite with its code. The errors of most drivers have the method Code.
type numbering interface {
	error
	Code() int
}

// SQLite's result codes: https://www.sqlite.org/rescode.html. The low byte is the primary code; the other
// bytes make it more specific.
const (
	sqliteError      = 1
	sqlitePerm       = 3
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteNoMemory   = 7
	sqliteReadOnly   = 8
	sqliteIOError    = 10
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteCantOpen   = 14
	sqliteProtocol   = 15
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteMismatch   = 20
	sqliteMisuse     = 21
	sqliteNoLFS      = 22
	sqliteAuth       = 23
	sqliteRange      = 25
	sqliteNotADB     = 26

	sqliteAbortRollback        = 516
	sqliteBusySnapshot         = 517
	sqliteConstraintCommitHook = 531
	sqliteConstraintPrimaryKey = 1555
	sqliteConstraintUnique     = 2067
	sqliteConstraintRowID      = 2579
)

func sqliteClass(code int) store.Class {
	switch code {
	case sqliteBusySnapshot:
		return store.ClassContended
	case sqliteAbortRollback, sqliteConstraintCommitHook: // the transaction was rolled back earlier, or a handler tried to commit
		return store.ClassAborted
	}
	switch code & 0xff {
	case sqliteError, sqliteTooBig, sqliteConstraint, sqliteMismatch, sqliteMisuse, sqliteAuth, sqliteRange:
		return store.ClassPermanent
	case sqlitePerm, sqliteBusy, sqliteLocked, sqliteNoMemory, sqliteReadOnly, sqliteIOError, sqliteCorrupt,
		sqliteFull, sqliteCantOpen, sqliteProtocol, sqliteNoLFS, sqliteNotADB:
		return store.ClassDown
	default:
		return 0
	}
}

// sqliteExonerates reports whether the cause of an error with this code is outside of the transaction. The result is
// false for a lock: no other transaction may write, so the handler must be waiting for a lock that it holds itself on
// another connection.
func sqliteExonerates(code int) bool {
	switch code & 0xff {
	case sqliteNoMemory, sqliteReadOnly, sqliteIOError, sqliteCorrupt, sqliteFull, sqliteCantOpen, sqliteNotADB:
		return true
	}
	return false
}

// For each primary code, advice for an operator.
var sqliteRemedies = map[int]string{
	sqliteBusy:     "another process holds the lock: let it finish, or open the database with a longer busy_timeout",
	sqliteLocked:   "another connection of this process holds the lock: write only through the handler's transaction",
	sqliteReadOnly: "make the file and its folder writable, or open the database without mode=ro",
	sqliteFull:     "free space on the disk, or raise max_page_count",
	sqliteCantOpen: "check that the folder exists and is writable",
	sqliteCorrupt:  "restore the file from a backup",
	sqliteNotADB:   "the path names another kind of file",
}

// sqliteRolledBack reports whether a COMMIT with this error code certainly wrote nothing: the transaction is
// still open or was rolled back. After an I/O error the commit may have been written.
func sqliteRolledBack(code int) bool {
	switch code & 0xff {
	case sqliteBusy, sqliteLocked, sqliteConstraint, sqliteFull, sqliteReadOnly:
		return true
	default:
		return false
	}
}

func lostConnection(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.ErrUnexpectedEOF)
}

// openedFile is the file of an open SQLite database. If the file is deleted, SQLite continues to read and write the
// deleted file and reports successful commits, but all data is lost when the last connection closes.
type openedFile struct {
	path   string
	opened os.FileInfo
}

// openedFileOf returns the file of a connection; nil for an in-memory database.
func openedFileOf(ctx context.Context, conn *sql.Conn, statement string) (*openedFile, error) {
	var path string
	if err := conn.QueryRowContext(ctx, statement).Scan(&path); err != nil {
		return nil, fmt.Errorf("sqlstore: reading the path of the database: %w", err)
	}
	if path == "" {
		return nil, nil
	}
	opened, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: the database file does not exist: %w: open an existing file", err)
	}
	return &openedFile{path, opened}, nil
}

// Check returns an error if the path no longer leads to the same file. Another file is never accepted, because
// the store has cached scopes and positions of the first file.
func (f *openedFile) Check() error {
	if f == nil {
		return nil
	}
	there, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = fmt.Errorf("the database file %s was moved or deleted: "+
			"move it back with its -wal file, or stop, restore a backup there and start again", f.path)
	case err != nil:
		err = fmt.Errorf("the database file cannot be inspected: %w", err)
	case !os.SameFile(f.opened, there):
		err = fmt.Errorf("the database file %s was replaced by another file: "+
			"move the first file back with its -wal file, or restart to use the new file", f.path)
	default:
		return nil
	}
	return &Error{"the file", store.ClassDown, err}
}

// hookCommits installs a commit hook on a SQLite connection. The hook rejects every commit while the function open
// returns false, so it rejects a handler's own COMMIT. A statement after a handler's own ROLLBACK would be committed at
// once without a transaction; the hook also rolls back this statement. A connection has one commit hook:
// https://www.sqlite.org/c3ref/commit_hook.html
//
// This package imports no driver, so hookCommits finds the driver's method by name. The parameter of the driver's
// method is a function that returns a number; a number other than zero rejects the commit. hookCommits returns false if
// the driver has no such method.
func hookCommits(conn any, open func() bool) bool {
	hook, of := commitHook(conn)
	if of == nil {
		return false
	}
	refuse := reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value {
		answer := reflect.New(of.Out(0)).Elem()
		if !open() {
			answer.SetInt(1)
		}
		return []reflect.Value{answer}
	})
	hook.Call([]reflect.Value{refuse})
	return true
}

func unhookCommits(conn any) {
	if hook, of := commitHook(conn); of != nil {
		hook.Call([]reflect.Value{reflect.Zero(of)})
	}
}

// commitHook returns the driver's method that installs the hook, and the type of the method's parameter. The type is
// nil if the driver has no such method.
func commitHook(conn any) (hook reflect.Value, of reflect.Type) {
	if conn == nil {
		return reflect.Value{}, nil
	}
	hook = reflect.ValueOf(conn).MethodByName("RegisterCommitHook")
	if !hook.IsValid() || hook.Type().NumIn() != 1 || hook.Type().NumOut() != 0 {
		return reflect.Value{}, nil
	}
	of = hook.Type().In(0)
	if of.Kind() != reflect.Func || of.NumIn() != 0 || of.NumOut() != 1 || !reflect.Zero(of.Out(0)).CanInt() {
		return reflect.Value{}, nil
	}
	return hook, of
}

// canHookCommits reports whether the driver of a connection supports commit hooks.
func canHookCommits(conn *sql.Conn) (can bool) {
	_ = conn.Raw(func(c any) error {
		_, of := commitHook(c)
		can = of != nil
		return nil
	})
	return can
}
