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

// Options are the settings of a store. The zero value suits most users.
type Options struct {
	// Prefix is the start of every table name; the default is "semel_". Prefix consists of a
	// letter or underscore and at most 31 more letters, digits or underscores.
	Prefix string
	// Schema is the schema of PostgreSQL's tables; the default is "public". Every statement contains the
	// schema's name, so the search_path makes no difference. SQLite ignores Schema.
	Schema string
	// Isolation is the isolation level of PostgreSQL's batches. The default is READ COMMITTED, independently of the
	// database's default. At higher levels, a batch that waited for another batch with the same message fails with
	// store.ClassContended and runs again. SQLite ignores Isolation.
	Isolation sql.IsolationLevel
	// Cipher, if not nil, encrypts the stored messages; see package encryption. Data from the time before
	// encryption stays readable.
	Cipher store.Cipher
	// EncryptedSince, if not zero, is the time from which the store rejects inbox rows in plain text: a consumer that
	// claims such a row parks it as unreadable. The time of a claim is the time of this process's clock, not the date
	// in the row. A store that is opened after EncryptedSince also encrypts the fingerprints that it writes; an earlier
	// release cannot read encrypted fingerprints. EncryptedSince needs a Cipher.
	EncryptedSince time.Time
	// Code returns the database's own error code of a driver's error. The default calls the method Code() int
	// of the error, which modernc.org/sqlite has.
	Code func(err error) (code int, ok bool)
}

// Store keeps markers and rows in the tables of a database, in the same transactions as the handlers' effects.
// Store is safe for concurrent use. Between batches, Store holds no connection. The caller closes the *sql.DB.
//
// In addition to the methods listed here, a Store has these methods:
//
//   - the methods of store.Inbox, store.Leases, store.Reaper, keystore.Store and store.CallerTx
//   - Requeue, Release, Reopen, Suppress, Edit, Resolve and Skip, with which operators change rows
//   - Known, RowsOf, Caused, LeasedKey, Denials, Upkeep and the Sample methods, which only return
//     information
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

// The parts of a Store by subject. The aliases make the embedded fields unexported.
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

// wrap returns the Store of an opened database, or the error of opening it.
func wrap(db *database.DB, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	return &Store{db, marking.New(db), inbox.New(db), leases.New(db), ordering.New(db), operators.New(db), registry.New(db), keystore.New(db),
		eraser.New(db), seals.New(db), reaper.New(db), inspect.New(db)}, nil
}

// Classify implements store.TxStore. Classify uses the codes of the database, never the text of an error. After a
// change of a table, PostgreSQL reports that a prepared statement is outdated. Classify counts errors of outdated
// statements. After an error of an outdated statement, the connections of open batches are closed, so that the next
// attempt prepares the statement again.
func (s *Store) Classify(err error) store.Class { return s.db.Classify(err) }

// IsStoreFault implements store.TxStore. IsStoreFault returns true for lock timeouts, full disks, lack of memory, and
// files that cannot be read or written.
func (s *Store) IsStoreFault(err error) bool { return s.db.IsStoreFault(err) }

//go:embed postgres
var postgresFiles embed.FS

// Postgres returns a store in a PostgreSQL database of version 13 or later. Postgres sends no statement and creates no
// tables; use Migrate to create tables.
func Postgres(db *sql.DB, o Options) (*Store, error) {
	return wrap(database.OpenPostgres(db, postgresFiles, database.Options(o)))
}

//go:embed sqlite
var sqliteFiles embed.FS

// SQLite returns a store in a SQLite database of version 3.42 or later, with any driver. SQLite creates no tables; use
// Migrate to create tables.
//
// The database must be a file: the store closes connections that ended uncleanly, and an in-memory database is lost
// with its connection. Open the file so that every connection has foreign_keys on and a busy_timeout. Without
// foreign_keys, Limits.Batch is 1. With journal_mode WAL, other connections can read while a batch is open. With
// modernc.org/sqlite:
//
//	sql.Open("sqlite", "file:shop.db?_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
//
// If you set SetMaxOpenConns, use 4 or more: an open batch holds a connection, rows are read on another connection, and
// a handler that does not end keeps its connection.
//
// The file must stay in its place. After the file was moved, deleted or replaced, all writes of the store fail with
// store.ClassDown; a commit that may have been lost also fails with store.ClassDown. The store works again when the
// file is back; another file needs another Store.
//
// SQLite allows one writer at a time: batches of one Store run one after the other, and a handler must write
// only through its transaction. store.TxOptions are ignored; the context ends a handler's statement.
// busy_timeout limits the wait for another process that writes, and no context can shorten that wait.
func SQLite(db *sql.DB, o Options) (*Store, error) {
	return wrap(database.OpenSQLite(db, sqliteFiles, database.Options(o)))
}

// Limits implements store.TxStore. SQLite allows one writer at a time. In two cases a batch of SQLite has only
// one message. Without foreign keys, a handler's own COMMIT would also commit the markers of other messages.
// With a driver that has no commit hook, statements after a handler's own ROLLBACK would be committed.
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

// MostSampled is the number at which the counting of rows stops.
const MostSampled = inspect.MostSampled

// The result types of the methods that only return information.
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

// The kinds of contradictions between a row and other records.
const (
	MismatchMarker = inspect.MismatchMarker
	MismatchStream = inspect.MismatchStream
	MismatchCause  = inspect.MismatchCause
)
