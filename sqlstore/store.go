package sqlstore

import (
	"database/sql"
	"embed"
	"time"

	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/eraser"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
	"github.com/semel-go/semel/sqlstore/internal/inspect"
	"github.com/semel-go/semel/sqlstore/internal/keystore"
	"github.com/semel-go/semel/sqlstore/internal/leases"
	"github.com/semel-go/semel/sqlstore/internal/marking"
	"github.com/semel-go/semel/sqlstore/internal/operators"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/sqlstore/internal/reaper"
	"github.com/semel-go/semel/sqlstore/internal/registry"
	"github.com/semel-go/semel/sqlstore/internal/seals"
	"github.com/semel-go/semel/store"
)

// Options are a store's settings. The zero value is right for most.
type Options struct {
	// Prefix begins the name of every table; the default is "semel_". A
	// letter or underscore, then at most 31 letters, digits or underscores.
	Prefix string
	// Schema is where PostgreSQL keeps the tables; the default is "public".
	// Every statement names it, whatever the search_path is. SQLite ignores it.
	Schema string
	// Isolation is the level of PostgreSQL's batches; the default is READ
	// COMMITTED, whatever the database's default is. Above it a batch that
	// waited for a copy fails with store.ClassContended and runs again. SQLite
	// ignores it.
	Isolation sql.IsolationLevel
	// Cipher, if not nil, encrypts what is kept of messages; see package encryption. What was
	// written without it is read as before.
	Cipher store.Cipher
	// EncryptedSince, if not zero, refuses rows of the inbox in plain text from that time on,
	// by this process's clock and whenever the rows say that they were received: a consumer
	// that claims one parks it as unreadable. A store that is opened after that time also encrypts
	// the fingerprints that it writes, which an earlier release cannot read. It needs a Cipher.
	EncryptedSince time.Time
	// Code finds the database's own number in an error of the driver. The
	// default asks the error for a method Code() int, which
	// modernc.org/sqlite has.
	Code func(err error) (code int, ok bool)
}

// Store keeps markers and rows in the tables of a database, in the same
// transactions as the handlers' effects. It is safe for use by several
// goroutines. It holds no connection between batches; the *sql.DB stays the
// caller's to close.
//
// Beside the methods that are listed here a Store has those of store.Inbox, store.Leases,
// store.Reaper, keystore.Store and store.CallerTx; Requeue, Release, Reopen, Suppress, Edit,
// Resolve and Skip, by which operators act on rows; and Known, RowsOf, Caused, LeasedKey,
// Denials, Upkeep and the Sample methods, which answer questions and decide nothing.
type Store struct {
	db *database.DB
	markingStore
	inboxStore
	leasesStore
	orderingStore
	operatorsStore
	registryStore
	keyStore
	eraserStore
	sealsStore
	reaperStore
	inspectStore
}

// What a Store does by subjects; their names here keep them out of its fields.
type (
	markingStore   = *marking.Store
	inboxStore     = *inbox.Store
	leasesStore    = *leases.Store
	orderingStore  = *ordering.Store
	operatorsStore = *operators.Store
	registryStore  = *registry.Store
	keyStore       = *keystore.Store
	eraserStore    = *eraser.Store
	sealsStore     = *seals.Store
	reaperStore    = *reaper.Store
	inspectStore   = *inspect.Store
)

// wrap returns the store of a database that was opened.
func wrap(db *database.DB, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	return &Store{db, marking.New(db), inbox.New(db), leases.New(db), ordering.New(db), operators.New(db), registry.New(db), keystore.New(db),
		eraser.New(db), seals.New(db), reaper.New(db), inspect.New(db)}, nil
}

// Classify implements store.TxStore. It goes by the database's codes, never by
// the text of an error. Of an error of PostgreSQL that a prepared statement is
// outdated, because its table was changed, it takes note: no batch that is open
// gives its connection back, so that the next run prepares it anew.
func (s *Store) Classify(err error) store.Class { return s.db.Classify(err) }

// IsStoreFault implements store.TxStore: for lock time-outs, full disks, lack
// of memory and files that cannot be read or written.
func (s *Store) IsStoreFault(err error) bool { return s.db.IsStoreFault(err) }

//go:embed postgres
var postgresFiles embed.FS

// Postgres returns a store in a PostgreSQL database of version 13 or later. It
// creates nothing: see Migrate. It sends nothing.
func Postgres(db *sql.DB, o Options) (*Store, error) {
	return wrap(database.OpenPostgres(db, postgresFiles, database.Options(o)))
}

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
func SQLite(db *sql.DB, o Options) (*Store, error) {
	return wrap(database.OpenSQLite(db, sqliteFiles, database.Options(o)))
}

// Limits implements store.TxStore. SQLite has one writer. Without foreign keys a batch of SQLite has one
// message, because a handler's own COMMIT would also commit its neighbours' marks; and with a driver that
// has no commit hook, because there what a handler writes after a ROLLBACK would stay.
func (s *Store) Limits() store.Limits {
	l := store.Limits{
		SingleWriter: s.db.Dialect.Writers == 1, StepOutput: steplimit.Output,
		Connections: max(s.db.Pool.Stats().MaxOpenConnections, 0), FitIdentity: s.db.Foreign.Fit,
	}
	if s.db.Alone {
		l.Batch = 1
	}
	if s.db.Days != nil {
		l.PartitionedBy = s.db.Days.IDTime.String()
	}
	return l
}

// MostSampled is up to which number a Sampled counts.
const MostSampled = inspect.MostSampled

// What people and metrics ask a Store for; see the methods that return them.
type (
	Known          = inspect.Known
	KnownKey       = inspect.KnownKey
	Upkeep         = inspect.Upkeep
	Mismatch       = inspect.Mismatch
	MismatchKind   = inspect.MismatchKind
	Looked         = inspect.Looked
	Sampled        = inspect.Sampled
	SampledRows    = inspect.SampledRows
	SampledReaping = inspect.SampledReaping
	SampledTable   = inspect.SampledTable
)

// The kinds of records that contradict a row.
const (
	MismatchMarker = inspect.MismatchMarker
	MismatchStream = inspect.MismatchStream
	MismatchCause  = inspect.MismatchCause
)
