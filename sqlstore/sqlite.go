package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

//go:embed sqlite
var sqliteFiles embed.FS

// SQLite returns a store in a SQLite database of version 3.42 or later, with
// any driver. It creates nothing: see Migrate.
//
// The database must be a file: the store discards a connection whose end was
// unclean, and with it a database that lives in its memory. Open it so that
// every connection has foreign_keys on (otherwise Limits.Batch is 1) and a
// busy_timeout; journal_mode WAL lets others read while a batch is open. With
// modernc.org/sqlite:
//
//	sql.Open("sqlite", "file:shop.db?_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
//
// A bound set with SetMaxOpenConns should be 4 or more: an open batch holds a
// connection, rows are read beside it, and a handler that does not end keeps
// its own.
//
// The file must stay where it is: once it was moved, deleted or replaced, all
// that the store is asked to write fails with store.ClassDown, and so does a commit
// that it may have lost. It works again when the file is back; another file is
// for another Store.
//
// SQLite has one writer: batches of one Store take turns, and a handler must
// write through its transaction only. store.TxOptions are ignored: what ends a
// statement of a handler is its context. A wait for another
// process that writes ends with busy_timeout, which no context cuts short.
func SQLite(db *sql.DB, o Options) (*Store, error) { return openSQLite(db, sqliteFiles, o) }

// openSQLite opens a store with the statements of these files.
func openSQLite(db *sql.DB, files fs.FS, o Options) (*Store, error) {
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
	if err := conn.QueryRowContext(ctx, s.sqlite.ForeignKeys).Scan(&s.guards); err != nil {
		return nil, fmt.Errorf("sqlstore: reading pragma foreign_keys: %w", err)
	}
	s.alone = !s.guards || !canHookCommits(conn)
	s.file, err = openedFileOf(ctx, conn, s.sqlite.File)
	return s, err
}

func sqliteDialect(files fs.FS, code func(error) (int, bool)) *dialect {
	return &dialect{
		name: "sqlite", files: files, fill: sqliteFill, writers: 1, lengths: []int{500, 100, 20, 4, 1}, text: sqltext.SQLite(), bind: "?", moment: "?", now: "cast(unixepoch('subsec') * 1000 as integer)", commitHook: true,
		believes: true,
		coded:    func(err error) bool { _, ok := code(err); return ok },
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
		rolledBack: func(err error) bool {
			n, ok := code(err)
			return ok && sqliteRolledBack(n)
		},
		old: func(c *adoption.Column) (value, last string) {
			return "cast(t." + c.Quoted + " as blob)", "case ?3 when 'integer' then cast(?2 as integer) when 'text' then cast(?2 as text) else ?2 end"
		},
	}
}

func sqliteFill(s *Store, texts map[string]string) error {
	s.sqlite = &sqlform.SQLite{}
	s.sql = &s.sqlite.Statements
	return sqlform.Fill(s.sqlite, texts)
}

func (b *batch) sqliteStart(ctx context.Context) ([]store.Verdict, error) {
	done, err := b.tx.ExecContext(ctx, b.store.sql.Guard)
	if err == nil {
		b.guarded, err = b.store.guardedBy(done)
	}
	if err != nil {
		return nil, err
	}
	return lists{b.store, b.tx, true}.mark(ctx, b.marks, b.former, b.store.sql.Mark)
}

var errUnguarded = errors.New("this connection does not enforce foreign keys, the one at start did: " +
	"set pragma foreign_keys where the database is opened, not with a statement")

func (s *Store) guardedBy(done sql.Result) (bool, error) {
	n, err := done.RowsAffected()
	if err == nil && n == 0 && s.guards {
		err = errUnguarded
	}
	return n == 1, err
}

// sqliteBroken asks the database, which here is no round trip: SQLite takes
// back the whole transaction with some errors.
func (b *batch) sqliteBroken() bool {
	if b.asks == nil {
		var err error
		if b.asks, err = b.tx.Prepare(b.store.sql.Guarded); err != nil {
			return true
		}
	}
	done, err := b.asks.Exec()
	if err != nil {
		b.doubt(err)
		return true
	}
	guards, err := done.RowsAffected()
	return err != nil || b.guarded && guards != 1
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
