package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/source"
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
type Store struct {
	db      *sql.DB
	dialect *dialect
	prefix  string
	names   *strings.Replacer
	sql     *sqlform.Statements
	// The dialect's own statements, of which sql is a part; nil for another's.
	postgres *sqlform.Postgres
	sqlite   *sqlform.SQLite
	crypt    sqlform.Crypt // what is kept of messages
	guards   bool
	alone    bool               // a batch is one message
	level    sql.IsolationLevel // of batches
	writers  chan struct{}      // a place each; nil if any number may write
	beside   beside             // where it marks, too
	days     *days              // where its markers lie; nil: in the table of all
	file     *openedFile        // nil unless the database is a file of this process

	outdated atomic.Int64 // how often a connection's plans were
	prepared prepared

	mu      sync.Mutex
	scopes  map[scope]int64              // guarded by mu; see remember
	sampled map[store.RowState]sampledTo // guarded by mu
	ahead   time.Time                    // when cutAhead looks at all rows again; guarded by mu
}

func open(db *sql.DB, d *dialect, o Options) (*Store, error) {
	if o.Prefix == "" {
		o.Prefix = "semel_"
	}
	names, err := d.names(o)
	if err != nil {
		return nil, err
	}
	return openAs(db, d, o, names)
}

// openAs opens a store whose tables are called so.
func openAs(db *sql.DB, d *dialect, o Options, names *strings.Replacer) (*Store, error) {
	texts, err := d.load(names, "marks.sql", "rows.sql", "edits.sql", "audit.sql", "claims.sql", "steps.sql", "results.sql", "erase.sql", "streams.sql", "lines.sql", "scopes.sql", "retention.sql", "controls.sql", "keys.sql", "derivations.sql", "generations.sql", "replays.sql", "sample.sql", "schema.sql", "lint.sql", "tables.sql")
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, dialect: d, prefix: o.Prefix, names: names, crypt: sqlform.NewCrypt(o.Cipher, o.EncryptedSince), scopes: map[scope]int64{}, beside: nothing{}}
	if err := d.fill(s, texts); err != nil {
		return nil, fmt.Errorf("sqlstore: the SQL of %s: %w", d.name, err)
	}
	s.fillParts()
	if d.writers > 0 {
		s.writers = make(chan struct{}, d.writers)
	}
	return s, nil
}

// Classify implements store.TxStore. It goes by the database's codes, never by
// the text of an error. Of an error of PostgreSQL that a prepared statement is
// outdated, because its table was changed, it takes note: no batch that is open
// gives its connection back, so that the next run prepares it anew.
func (s *Store) Classify(err error) store.Class {
	err = readable(err)
	if s.dialect.outdated != nil && s.dialect.outdated(err) {
		s.outdated.Add(1)
	}
	var own *storeError
	switch {
	case errors.As(err, &own):
		return own.class
	case errors.Is(err, sql.ErrTxDone):
		return store.ClassAborted
	}
	class := s.dialect.classify(err)
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
func (s *Store) IsStoreFault(err error) bool { return s.dialect.exonerates(readable(err)) }

// Limits implements store.TxStore. SQLite has one writer. Without foreign keys a batch of SQLite has one
// message, because a handler's own COMMIT would also commit its neighbours' marks; and with a driver that
// has no commit hook, because there what a handler writes after a ROLLBACK would stay.
func (s *Store) Limits() store.Limits {
	l := store.Limits{
		SingleWriter: s.dialect.writers == 1, StepOutput: store.MaxStepOutput,
		Connections: max(s.db.Stats().MaxOpenConnections, 0), FitIdentity: s.beside.Fit,
	}
	if s.alone {
		l.Batch = 1
	}
	if s.days != nil {
		l.PartitionedBy = s.days.IDTime.String()
	}
	return l
}

// LoadPosition implements source.PositionStore.
func (s *Store) LoadPosition(ctx context.Context, consumer, lane string) (source.Position, bool, error) {
	var p source.Position
	err := s.db.QueryRowContext(ctx, s.sql.Position, sqlform.Plain(consumer), sqlform.Plain(lane)).Scan(&p.Offset, &p.Length, &p.Check)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return source.Position{}, false, nil
	case err != nil:
		return source.Position{}, false, s.blameless("position of "+lane, err)
	}
	return p, true, nil
}

// SavePosition implements source.PositionStore.
func (s *Store) SavePosition(ctx context.Context, consumer, lane string, p source.Position) error {
	return s.writePosition(ctx, s.sql.SavePosition, consumer, lane, p)
}

// KeepPosition implements source.PositionStore.
func (s *Store) KeepPosition(ctx context.Context, consumer, lane string, p source.Position) (source.Position, error) {
	if err := s.writePosition(ctx, s.sql.KeepPosition, consumer, lane, p); err != nil {
		return source.Position{}, err
	}
	kept, there, err := s.LoadPosition(ctx, consumer, lane)
	if err == nil && !there {
		err = s.blameless("position of "+lane, errors.New("it was deleted while it was kept; try again"))
	}
	return kept, err
}

func (s *Store) writePosition(ctx context.Context, statement, consumer, lane string, p source.Position) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, sqlform.Plain(consumer), sqlform.Plain(lane), p.Offset, p.Length, notNil(p.Check))
		return err
	})
	if err != nil {
		return s.blameless(fmt.Sprintf("saving the position of %s", lane), err)
	}
	return nil
}
