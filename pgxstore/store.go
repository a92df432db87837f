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

// Options are a store's settings. The zero value is right for most.
type Options struct {
	// Schema is the schema of the tables; the default is "public".
	Schema string
	// Prefix begins the name of every table; the default is "semel_".
	Prefix string
	// Cipher, if not nil, encrypts what is kept of messages; see package encryption. What was
	// written without it is read as before.
	Cipher store.Cipher
	// EncryptedSince, if not zero, refuses rows of the inbox in plain text from that time on, and
	// has fingerprints encrypted; see sqlstore.Options.
	EncryptedSince time.Time
	// Isolation is the level of every batch's transaction; the default is
	// read committed, whatever the server's default is. Under the other levels
	// a copy in flight elsewhere makes the whole batch run again.
	Isolation pgx.TxIsoLevel
	// Listen, when set, is the connection string of one more connection of the
	// process, over which its consumers hear at once that something in their inbox
	// is due, which they else find out by asking; the pool sends what others hear. It
	// must lead to the server itself: behind a pooler that gives each transaction
	// another connection nothing is heard, which is told.
	Listen string
}

// Store keeps markers and rows in the tables of a PostgreSQL database, in the
// same transactions as the effects of handlers, which get a pgx.Tx. It is safe
// for use by several goroutines. A batch holds one connection of the pool from
// Begin to its end, every other call one while it lasts; whoever waits for one
// waits under the caller's context. The pool stays the caller's to close.
//
// Beside the methods that are listed here a Store has those of store.Inbox, store.Leases,
// store.Reaper, keystore.Store, source.PositionStore and laneoffset.Store, as sqlstore has them.
//
// Its tables are made by Migrate and looked at by Status and Check. What was set
// aside is listed by Rows and closed by Discard; Requeue has it worked on again.
type Store struct {
	tables
	pool  *pgxpool.Pool
	begin string
	sql   *sqlform.Postgres
	// adopted: its statements are of a table of the user's, too, so that nothing
	// is advised about Semel's.
	adopted bool
	// days are the statements of a table of days; nil without one.
	days    *sqlform.Dated
	guesses *guesses
}

// Limits implements store.TxStore. The connections are those of the pgx pool.
func (s *Store) Limits() store.Limits {
	l := s.inner.Limits()
	l.Connections = int(s.pool.Config().MaxConns)
	return l
}

// New returns a store in the database of the pool. It creates nothing and asks
// nothing: see Migrate and Check. For what is done seldom it opens a handle of
// database/sql over the pool, which stays open as long as the process: one
// goroutine that waits, and no connection while nothing is done. Nobody can tell
// when the last call of a store that nothing refers to any more has ended.
//
// Statements are prepared and kept by connection. Behind a pooler that gives
// every transaction another connection (PgBouncer in transaction mode) open the
// pool with default_query_exec_mode=cache_describe, or exec: then nothing has a
// name on the server.
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

// Queued is the same store for handlers that queue their statements. The two
// may be used at the same time.
func (s *Store) Queued() *QueuedStore { return &QueuedStore{tables: s.tables, direct: s} }

// Adopt returns a store for one consumer that marks in a table of the user's as
// well as in Semel's; see sqlstore.Store.Adopt, whose errors these are. Its
// Queued does so, too.
func (s *Store) Adopt(ctx context.Context, a sqlstore.Adopted) (*Store, error) {
	inner, err := s.inner.Adopt(ctx, a)
	if err != nil {
		return nil, err
	}
	return &Store{tables: tables{inner, inner, s.exchange}, pool: s.pool, begin: s.begin, sql: sqlstore.Statements(inner, sqlform.Revision12{}), adopted: true}, nil
}

// QueuedStore is a Store whose handlers get a *Queue. A batch takes two round
// trips whatever its size: one opens the transaction and writes the marks, one
// sends every queued statement with COMMIT. A callback that may refuse costs one
// more, marks that were there before another.
type QueuedStore struct {
	tables
	direct *Store
}

// Limits implements store.TxStore.
func (s *QueuedStore) Limits() store.Limits { return s.direct.Limits() }

// Begin implements store.TxStore.
func (s *QueuedStore) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*Queue], []store.Verdict, error) {
	b, verdicts, err := s.direct.open(ctx, o, marks, false)
	if err != nil {
		return nil, nil, err
	}
	return &queued{batch: b}, verdicts, nil
}

// Classify implements store.TxStore.
func (s *QueuedStore) Classify(err error) store.Class { return s.direct.Classify(err) }

// one is a statement that fails unless it changes one row.
func (b *batch) one(sql string) string {
	if text, ok := b.known.ones[sql]; ok {
		return text
	}
	if len(b.known.ones) >= b.known.most {
		clear(b.known.ones)
	}
	text := b.store.One(sql)
	b.known.ones[sql] = text
	return text
}

// One is the text that Queue.ExecOne sends for a statement: for whoever has the
// server prepare it at start.
func (s *Store) One(statement string) string {
	return strings.Replace(s.sql.ExecOne, "{statement}", sqltext.Postgres().Bare(statement), 1)
}
