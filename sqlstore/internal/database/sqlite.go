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

// OpenSQLite opens a store with the statements of these files.
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
		exonerates: func(err error) bool {
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

// numbering is an error of SQLite, as most drivers make it.
type numbering interface {
	error
	Code() int
}

// SQLite's result codes: https://www.sqlite.org/rescode.html. The low byte is
// the primary code, the rest tells more.
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
	case sqliteAbortRollback, sqliteConstraintCommitHook: // rolled back before, or outside of the store's transaction
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

// sqliteExonerates names the codes that are not the doing of the transaction
// that met them. A lock is not among them: inside a transaction, which has the
// writer's place, it is a handler's that waits for itself.
func sqliteExonerates(code int) bool {
	switch code & 0xff {
	case sqliteNoMemory, sqliteReadOnly, sqliteIOError, sqliteCorrupt, sqliteFull, sqliteCantOpen, sqliteNotADB:
		return true
	}
	return false
}

// sqliteRemedies say what an operator does about a failure, by primary code.
var sqliteRemedies = map[int]string{
	sqliteBusy:     "another process holds the lock: let it finish, or open the database with a longer busy_timeout",
	sqliteLocked:   "another connection of this process holds the lock: write only through the handler's transaction",
	sqliteReadOnly: "make the file and its folder writable, or open the database without mode=ro",
	sqliteFull:     "free space on the disk, or raise max_page_count",
	sqliteCantOpen: "see that the folder exists and may be written",
	sqliteCorrupt:  "restore the file from a backup",
	sqliteNotADB:   "the path names another kind of file",
}

// sqliteRolledBack names the codes with which COMMIT leaves the transaction
// open, or takes it back; an error of input and output may come after the
// commit was written.
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

// openedFile is the file that a SQLite database was opened in. SQLite goes on
// reading and writing a file whose name was removed, and says that it commits:
// what it writes then is gone when the last connection closes.
type openedFile struct {
	path   string
	opened os.FileInfo
}

// openedFileOf asks a connection for its file. It is nil for a database that
// has none, as one in memory.
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
		return nil, fmt.Errorf("sqlstore: the database has no file: %w: open one that is there", err)
	}
	return &openedFile{path, opened}, nil
}

// Check reports whether the path still names the file. Its error is the store's.
// Another file is never taken while the store lives: whoever uses it keeps
// numbers of scopes and positions that are the first one's.
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
		err = fmt.Errorf("the database file cannot be looked at: %w", err)
	case !os.SameFile(f.opened, there):
		err = fmt.Errorf("the database file %s was replaced by another file: "+
			"move the first one back with its -wal file, or start again to work with the one that is there", f.path)
	default:
		return nil
	}
	return &Error{"the file", store.ClassDown, err}
}

// hookCommits keeps everything but the store's own commit from committing on a
// connection of SQLite: whatever a handler's own COMMIT holds is taken back, and
// so is a statement that it sends after its own ROLLBACK, when each statement
// commits by itself. It uses the commit hook of the connection, of which there
// is one: https://www.sqlite.org/c3ref/commit_hook.html
//
// No driver is imported: the method is looked for by its name, and its
// parameter is a function that returns a number, of which anything but zero
// refuses. It reports false if the driver has no such method.
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

// unhookCommits takes the hook away.
func unhookCommits(conn any) {
	if hook, of := commitHook(conn); of != nil {
		hook.Call([]reflect.Value{reflect.Zero(of)})
	}
}

// commitHook is the method that sets the hook and the type of what it takes,
// which is nil if there is none.
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

// canHookCommits reports whether the driver of a connection has what that needs.
func canHookCommits(conn *sql.Conn) (can bool) {
	_ = conn.Raw(func(c any) error {
		_, of := commitHook(c)
		can = of != nil
		return nil
	})
	return can
}
