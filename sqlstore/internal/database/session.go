package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Session is a write transaction on a connection of its own.
type Session struct {
	DB      *DB
	conn    *sql.Conn
	InTx    *sql.Tx
	Handle  handle
	cancel  context.CancelFunc
	release func() // gives back the right to write; may be called twice
	Killed  atomic.Bool
	plans   int64 // value of DB.outdated at the beginning of the session
	// hasCommitHook is true if the commit hook rejects every commit while the field commits is false.
	hasCommitHook bool
	commits       atomic.Bool
	// unreliable is true if the store's own statements may fail because of the state of the connection.
	unreliable bool

	mu       sync.Mutex
	released bool // guarded by mu; true after the connection was released
	aborted  bool // guarded by mu; true after a call of abort
}

// Open waits until this process may write (SQLite allows one writer at a time), and begins a transaction. The context
// limits only this call, not the transaction.
func (s *DB) Open(ctx context.Context, level sql.IsolationLevel) (*Session, error) {
	release, err := s.AcquireWriter(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.connection(ctx)
	if err != nil {
		release()
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &Session{DB: s, conn: conn, cancel: cancel, release: release, plans: s.outdated.Load()}
	if s.Dialect.handleOf != nil {
		_ = conn.Raw(func(c any) error { e.Handle = s.Dialect.handleOf(c); return nil })
	}
	if s.Dialect.commitHook {
		_ = conn.Raw(func(c any) error { e.hasCommitHook = hookCommits(c, e.commits.Load); return nil })
	}
	err = e.doOrAbort(ctx, func() (err error) {
		e.InTx, err = conn.BeginTx(own, &sql.TxOptions{Isolation: level})
		return err
	})
	if err != nil {
		e.Release(false)
		return nil, err
	}
	return e, nil
}

// connection returns a connection if the database file is still at its path. Without the check of the file, SQLite
// would create an empty file.
func (s *DB) connection(ctx context.Context) (*sql.Conn, error) {
	if err := s.File.Check(); err != nil {
		return nil, err
	}
	return s.Pool.Conn(ctx)
}

// doOrAbort calls the function do, and closes the connection if ctx ends before do returns. Use doOrAbort for functions
// of database/sql that take no context. With SQLite nothing is closed, because functions of SQLite never wait for a
// network.
func (e *Session) doOrAbort(ctx context.Context, do func() error) error {
	if e.DB.Dialect.handleOf != nil {
		defer context.AfterFunc(ctx, e.abort)()
	}
	return do()
}

// abort ends the transaction. Any goroutine may call abort, even during a statement. If the driver gives access to the
// connection, abort closes the connection.
func (e *Session) abort() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.released {
		return
	}
	e.aborted = true
	e.cancel()
	if e.Handle.closeNow != nil {
		e.Handle.closeNow()
	}
}

// AcquireWriter waits until this transaction may write (SQLite allows one writer at a time). The returned function
// gives the right to write back.
func (s *DB) AcquireWriter(ctx context.Context) (release func(), err error) {
	if s.writers == nil {
		return func() {}, nil
	}
	select {
	case s.writers <- struct{}{}:
		return sync.OnceFunc(func() { <-s.writers }), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another writer: %w", ctx.Err())
	}
}

// The time limit for the message to the server that a connection ends.
const closeTimeout = time.Second

// Suspect is called after an error of the store's own statements, and decides whether to close the connection. A
// handler may have left a setting on the connection, such as read only, with which every transaction on the connection
// fails. If the connection is not the cause, the only cost of closing it is a new connection.
func (e *Session) Suspect(ctx context.Context, err error) {
	class := e.DB.Classify(err)
	e.unreliable = ctx.Err() == nil && (class == store.ClassDown || class != store.ClassContended && e.DB.Dialect.Coded(err))
}

// Doubt does the same as Suspect, for an error that a handler may have caused. The connection is closed only if the
// error means that the store is down.
func (e *Session) Doubt(err error) {
	e.unreliable = e.unreliable || e.DB.Classify(err) == store.ClassDown
}

// close closes the driver's connection itself, below database/sql.
func (e *Session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = e.Handle.close(ctx)
}

// Release returns the connection to the pool. If the transaction did not end cleanly, Release closes the
// connection.
func (e *Session) Release(clean bool) {
	e.mu.Lock()
	e.released = true
	wounded := e.aborted
	clean = clean && !e.aborted && !e.unreliable && e.plans == e.DB.outdated.Load()
	e.mu.Unlock()
	if e.hasCommitHook {
		_ = e.conn.Raw(func(c any) error { unhookCommits(c); return nil })
	}
	switch {
	case e.Handle.close == nil:
	case wounded: // the driver may not know yet that the connection is closed, or may be using the connection
		_ = e.conn.Raw(func(any) error { e.close(); return nil })
	case e.unreliable:
		e.close()
	}
	if !clean {
		_ = e.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = e.conn.Close()
	e.cancel()
	e.release()
}

// CommitTx is the only way to commit a Session. If the database file was moved or deleted during the transaction, the
// commit may be lost with the file, so CommitTx reports an unknown outcome.
func (e *Session) CommitTx(ctx context.Context) error {
	e.commits.Store(true)
	if err := e.doOrAbort(ctx, e.InTx.Commit); err != nil {
		return err
	}
	return e.DB.File.Check()
}

// RollbackTx rolls back the transaction and releases the connection.
func (e *Session) RollbackTx(ctx context.Context) {
	e.Release(e.doOrAbort(ctx, e.InTx.Rollback) == nil)
}

// KillTx ends the transaction. Any goroutine may call KillTx. After KillTx, no further statement of the transaction
// runs. Other transactions can begin to write after the database has rolled back.
func (e *Session) KillTx() {
	e.Killed.Store(true)
	e.abort()
	e.release()
}

// Write runs the function do in a new transaction. If do returns an error, the transaction is rolled back.
func (s *DB) Write(ctx context.Context, do func(tx *sql.Tx) error) error {
	e, err := s.Open(ctx, s.Dialect.Isolation)
	if err != nil {
		return err
	}
	if err = s.lockAnd(ctx, e.InTx, do); err != nil {
		e.Suspect(ctx, err)
		e.RollbackTx(ctx)
		return err
	}
	err = e.CommitTx(ctx)
	e.Release(err == nil)
	if err != nil && !IsOver(err) && !s.Dialect.RolledBack(err) {
		return &UnknownError{err}
	}
	return err
}

// lockAnd writes to the database before the function do can read. In SQLite, a transaction that reads first may find at
// its first write that its snapshot is outdated, and then fails at once.
func (s *DB) lockAnd(ctx context.Context, tx *sql.Tx, do func(tx *sql.Tx) error) error {
	if _, err := tx.ExecContext(ctx, s.SQL.Lock); err != nil {
		return err
	}
	return do(tx)
}
