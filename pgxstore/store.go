package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Options are the settings of a store. The zero value suits most users.
type Options struct {
	// Schema is the schema of the tables; the default is "public".
	Schema string
	// Prefix is the beginning of every table name; the default is "semel_".
	Prefix string
	// Cipher, if not nil, encrypts the stored messages; see package encryption. Data from the time before
	// encryption stays readable.
	Cipher store.Cipher
	// EncryptedSince, if not zero, is the time from which the store rejects inbox rows in plain text and
	// encrypts fingerprints; see sqlstore.Options.
	EncryptedSince time.Time
	// Isolation is the isolation level of each batch's transaction. The default is read committed, independently of the
	// server's default. With other levels, the whole batch runs again if another batch handles a duplicate of one of
	// its messages at the same time.
	Isolation pgx.TxIsoLevel
	// Listen, if set, is the connection string of an additional connection. Over this connection, consumers are
	// notified at once of rows in their inbox that can be claimed. Without Listen, consumers poll. Notifications are
	// sent over the pool. The connection must lead to the database server itself: behind a pooler in transaction mode
	// no notification arrives, and the method Listen returns an error.
	Listen string
}

// Store keeps markers and rows in the tables of a PostgreSQL database, in the same transactions as the effects
// of handlers, which get a pgx.Tx. Store is safe for concurrent use. A batch holds one connection of the pool
// from Begin to its end, and any other call holds one connection while it runs. The caller's context limits
// the wait for a connection. The caller closes the pool.
//
// In addition to the methods listed here, a Store has the methods of store.Inbox, store.Leases, store.Reaper,
// keystore.Store, source.PositionStore and laneoffset.Store; sqlstore implements them.
//
// Migrate creates the tables, and Status and Check inspect them. Rows lists parked messages and other inbox
// rows, Discard closes rows, and Requeue retries them.
type Store struct {
	tables
	pool  *pgxpool.Pool
	begin string
	sql   *sqlform.Postgres
	// usesUserTable is true if the statements also use a user's own table, so that advice about Semel's tables may
	// be wrong.
	usesUserTable bool
	// The statements for a table with daily partitions; nil without such a table.
	days    *sqlform.Dated
	guesses *guesses
}

// Limits implements store.TxStore. Connections is the size of the pgx pool.
func (s *Store) Limits() store.Limits {
	l := s.inner.Limits()
	l.Connections = int(s.pool.Config().MaxConns)
	return l
}

// New returns a store in the database of the pool. New sends no statement and creates no tables: see Migrate and Check.
// For rare operations, New opens a database/sql handle over the pool, which stays open until the process ends. The
// handle costs one waiting goroutine, and no connection while idle. The handle is never closed, because the store
// cannot know when the last call has ended.
//
// Statements are prepared once per connection. Behind a pooler in transaction mode, such as PgBouncer, open
// the pool with default_query_exec_mode=cache_describe or exec: these modes create no named statements on the
// server.
func New(pool *pgxpool.Pool, o Options) (*Store, error) {
	if o.Isolation == "" {
		o.Isolation = pgx.ReadCommitted
	}
	switch o.Isolation {
	case pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable:
	default:
		return nil, fmt.Errorf("pgxstore: isolation %q: use read committed, repeatable read or serializable", o.Isolation)
	}
	own := sqlstore.Options{Schema: o.Schema, Prefix: o.Prefix, Cipher: o.Cipher, EncryptedSince: o.EncryptedSince}
	db := stdlib.OpenDBFromPool(pool)
	inner, err := sqlstore.Postgres(db, own)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	exchange, err := newExchange(pool, o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{tables: tables{inner, inner, exchange}, pool: pool, begin: "begin isolation level " + string(o.Isolation), sql: sqlstore.Statements(inner, sqlform.Revision12{}), guesses: &guesses{}}, nil
}

// Queued returns the same store for handlers that queue their statements. A program may use the Store and the
// QueuedStore at the same time.
func (s *Store) Queued() *QueuedStore { return &QueuedStore{tables: s.tables, direct: s} }

// Adopt returns a store for one consumer, which writes the consumer's markers to Semel's table and also to a user's own
// table; see sqlstore.Store.Adopt, also for the errors. The method Queued of the returned store also writes to both
// tables.
func (s *Store) Adopt(ctx context.Context, a sqlstore.Adopted) (*Store, error) {
	inner, err := s.inner.Adopt(ctx, a)
	if err != nil {
		return nil, err
	}
	return &Store{tables: tables{inner, inner, s.exchange}, pool: s.pool, begin: s.begin, sql: sqlstore.Statements(inner, sqlform.Revision12{}), usesUserTable: true}, nil
}

// QueuedStore is a Store whose handlers get a *Queue. A batch of any size takes two round trips: the first opens the
// transaction and writes the markers, and the second sends all queued statements with COMMIT. If callbacks read rows, a
// batch takes one round trip more. If some of the markers exist already, a batch also takes one round trip more.
type QueuedStore struct {
	tables
	direct *Store
}

// Limits implements store.TxStore.
func (s *QueuedStore) Limits() store.Limits { return s.direct.Limits() }

// Begin implements store.TxStore.
func (s *QueuedStore) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*Queue], []store.Verdict, error) {
	b, verdicts, err := s.direct.beginBatch(ctx, o, marks, false)
	if err != nil {
		return nil, nil, err
	}
	return &queuedBatch{batch: b}, verdicts, nil
}

// Classify implements store.TxStore.
func (s *QueuedStore) Classify(err error) store.Class { return s.direct.Classify(err) }

// oneRowText returns another text for a statement, which fails unless the statement changes exactly one row.
func (b *batch) oneRowText(sql string) string {
	if text, ok := b.known.oneRowTexts[sql]; ok {
		return text
	}
	if len(b.known.oneRowTexts) >= b.known.most {
		clear(b.known.oneRowTexts)
	}
	text := b.store.One(sql)
	b.known.oneRowTexts[sql] = text
	return text
}

// One returns the text that Queue.ExecOne sends for a statement, for callers that prepare this text at startup.
func (s *Store) One(statement string) string {
	return strings.Replace(s.sql.ExecOne, "{statement}", sqltext.Postgres().Bare(statement), 1)
}
